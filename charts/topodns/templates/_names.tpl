{{/* Names, labels and selectors. */}}

{{- define "topodns.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "topodns.fullname" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "topodns.deployment" -}}
{{- default (include "topodns.fullname" .) .Values.deployment.name -}}
{{- end -}}

{{- define "topodns.service" -}}
{{- $own := eq .Values.mode "replace" | ternary "kube-dns" (include "topodns.fullname" .) -}}
{{- default $own .Values.service.name -}}
{{- end -}}

{{- define "topodns.account" -}}
{{- $own := .Values.serviceAccount.create | ternary (include "topodns.fullname" .) "default" -}}
{{- default $own .Values.serviceAccount.name -}}
{{- end -}}

{{- define "topodns.role" -}}
{{- default (include "topodns.fullname" .) .Values.clusterRole.nameOverride -}}
{{- end -}}

{{/* What every object carries. Argument: [root, value of app.kubernetes.io/name]. */}}
{{- define "topodns.commonLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ index . 1 }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with $root.Values.customLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "topodns.labels" -}}
{{ include "topodns.commonLabels" (list . (include "topodns.name" .)) }}
{{- if eq .Values.mode "replace" }}
k8s-app: kube-dns
{{- end }}
{{- end -}}

{{- define "topodns.nodeCacheLabels" -}}
{{ include "topodns.commonLabels" (list . "node-local-dns") }}
k8s-app: node-local-dns
{{- end -}}

{{- define "topodns.autoscalerLabels" -}}
{{ include "topodns.commonLabels" (list . (printf "%s-autoscaler" (include "topodns.name" .))) }}
{{- end -}}

{{- define "topodns.locator" -}}
{{- printf "%s-locator" (include "topodns.fullname" .) -}}
{{- end -}}

{{- define "topodns.locatorSelector" -}}
app.kubernetes.io/name: {{ include "topodns.name" . }}-locator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "topodns.locatorLabels" -}}
{{ include "topodns.commonLabels" (list . (printf "%s-locator" (include "topodns.name" .))) }}
{{- end -}}

{{/* What the server's pods are found by, and nobody else's. Without k8s-app, so that a release can change its mode. */}}
{{- define "topodns.selectorLabels" -}}
app.kubernetes.io/name: {{ include "topodns.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "topodns.podLabels" -}}
{{- $own := include "topodns.selectorLabels" . | fromYaml -}}
{{- if eq .Values.mode "replace" -}}{{- $_ := set $own "k8s-app" "kube-dns" -}}{{- end -}}
{{- $selected := default (dict) .Values.deployment.selector.matchLabels -}}
{{- merge (dict) .Values.podLabels .Values.customLabels $selected $own | toYaml -}}
{{- end -}}

{{/* What the Service finds: in mode replace all pods of the cluster DNS, CoreDNS's among them until they have gone. */}}
{{- define "topodns.serviceSelector" -}}
{{- if .Values.service.selector -}}
{{ toYaml .Values.service.selector }}
{{- else if eq .Values.mode "replace" -}}
k8s-app: kube-dns
{{- else -}}
{{ include "topodns.selectorLabels" . }}
{{- end -}}
{{- end -}}

{{/* Argument: [root, annotations of the object's own, indentation]. Nothing where there are none. */}}
{{- define "topodns.annotations" -}}
{{- $all := merge (dict) (index . 1) (index . 0).Values.customAnnotations -}}
{{- if $all -}}
{{- dict "annotations" $all | toYaml | nindent (index . 2) -}}
{{- end -}}
{{- end -}}

{{/* Argument: a tag, which is a number after `--set image.tag=20261128`: it has no exponent, as a float would. */}}
{{- define "topodns.tag" -}}
{{- if kindIs "float64" . }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{- define "topodns.image" -}}
{{- $tag := include "topodns.tag" (default (index . 0).Chart.AppVersion (index . 1).tag) -}}
{{- with (index . 1).digest -}}
{{ printf "%s@%s" (index $ 1).repository . }}
{{- else -}}
{{ printf "%s:%s" (index . 1).repository $tag }}
{{- end -}}
{{- end -}}

{{/* Addresses of the cluster DNS that the node cache takes as well, with commas; "" for none. */}}
{{- define "topodns.clusterAddresses" -}}
{{- if .Values.nodeCache.intercept -}}
{{- join "," .Values.nodeCache.dnsServer | default (include "topodns.ownAddresses" .) -}}
{{- end -}}
{{- end -}}

{{/*
Addresses of the Service, with commas: those given; else, as the cluster DNS, those that the cluster has for it: of the
Service as it is, or those that kubeadm gives the kubelets. A rendering without a cluster finds none.
*/}}
{{- define "topodns.ownAddresses" -}}
{{- $addresses := .Values.service.clusterIPs | default (compact (list .Values.service.clusterIP)) -}}
{{- if and (not $addresses) (include "topodns.makesClusterDns" .) -}}
  {{- $service := lookup "v1" "Service" .Release.Namespace (include "topodns.service" .) -}}
  {{- $addresses = dig "spec" "clusterIPs" list $service -}}
  {{- if not $addresses -}}
    {{- $kubelets := lookup "v1" "ConfigMap" "kube-system" "kubelet-config" -}}
    {{- $addresses = dig "clusterDNS" list (dig "data" "kubelet" "" $kubelets | fromYaml) -}}
  {{- end -}}
{{- end -}}
{{- without $addresses "None" | join "," -}}
{{- end -}}

{{/* Not empty where the release has the Service of the cluster DNS. */}}
{{- define "topodns.makesClusterDns" -}}
{{- if and (eq .Values.mode "replace") .Values.deployment.enabled .Values.service.create -}}yes{{- end -}}
{{- end -}}

{{/* The token of a Pod whose containers get none by themselves: a volume, and the mount of the container that needs it. */}}
{{- define "topodns.tokenVolume" -}}
- name: kube-api-access
  projected:
    sources:
    - serviceAccountToken:
        path: token
        expirationSeconds: 3607
    - configMap:
        name: kube-root-ca.crt
        items:
        - key: ca.crt
          path: ca.crt
    - downwardAPI:
        items:
        - path: namespace
          fieldRef:
            fieldPath: metadata.namespace
{{- end -}}

{{- define "topodns.tokenMount" -}}
- name: kube-api-access
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end -}}

{{/* For templates in the values that CoreDNS's chart documents. */}}
{{- define "coredns.name" -}}{{- include "topodns.name" . -}}{{- end -}}

{{/* With commas. Beside the cluster DNS the release denies no user of the cluster anything, unless it is told to. */}}
{{- define "topodns.admissionActions" -}}
{{- join ", " .Values.admissionPolicy.actions | default (eq .Values.mode "replace" | ternary "Deny" "Warn") -}}
{{- end -}}
