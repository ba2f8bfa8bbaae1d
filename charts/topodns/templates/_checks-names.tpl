{{/* The same for names and labels, and for a mode that takes the Pods from a Service that stays. */}}

{{/* Service kube-dns stays (helm.sh/resource-policy) when a release goes on in mode beside, and its selector with it. */}}
{{- define "topodns.checkMode" -}}
{{- if and .Release.IsUpgrade (eq .Values.mode "beside") -}}
  {{- $kept := lookup "v1" "Service" .Release.Namespace "kube-dns" -}}
  {{- if eq (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $kept) .Release.Name -}}
    {{- range (lookup "apps/v1" "Deployment" .Release.Namespace "").items -}}
      {{- $owner := dig "metadata" "annotations" "meta.helm.sh/release-name" "" . -}}
      {{- if and (eq $owner $.Release.Name) (eq (dig "spec" "template" "metadata" "labels" "k8s-app" "" .) "kube-dns") -}}
        {{- fail (printf "mode: expected replace, which this release has, found beside: the Service kube-dns would stay and find no Pods any more. For a trial install a release of another name with mode=beside; to give topodns up as the cluster DNS start another one (Pods with k8s-app: kube-dns), then run helm uninstall %s" $owner) -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{- define "topodns.checkLabels" -}}
{{- $found := list "k8s-app" "app.kubernetes.io/name" "app.kubernetes.io/instance" -}}
{{- $common := concat $found (list "app.kubernetes.io/managed-by" "helm.sh/chart") -}}
{{- range $each := list (list "podLabels" .Values.podLabels $found) (list "customLabels" .Values.customLabels $common) (list "nodeCache.podLabels" .Values.nodeCache.podLabels $found) -}}
  {{- range $key := index $each 2 -}}
    {{- if hasKey (index $each 1) $key -}}
      {{- fail (printf "%s: expected other labels than the chart's own, found %s, which Pods and objects are found by" (index $each 0) $key) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if and .Values.deployment.enabled .Values.service.create (not .Values.service.selector) -}}
  {{- $labels := include "topodns.podLabels" . | fromYaml -}}
  {{- range $key, $value := include "topodns.serviceSelector" . | fromYaml -}}
    {{- if ne (get $labels $key) $value -}}
      {{- fail (printf "deployment.selector: expected Pods that the Service finds by %s: %s, found %s: set service.selector as well" $key $value (get $labels $key)) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{- define "topodns.checkNames" -}}
{{- $names := dict "fullnameOverride" .Values.fullnameOverride "deployment.name" .Values.deployment.name "serviceAccount.name" .Values.serviceAccount.name -}}
{{- $services := dict "service.name" .Values.service.name -}}
{{- if .Values.deployment.enabled -}}
  {{- if .Values.service.create -}}{{- $_ := set $services "service.name" (include "topodns.service" .) -}}{{- end -}}
  {{- if .Values.nodeCache.enabled -}}
    {{- $own := dict "service.name" (include "topodns.service" .) "deployment.name" (include "topodns.deployment" .) "serviceAccount.name" (include "topodns.account" .) -}}
    {{- $_ := set $own "fullnameOverride" (include "topodns.fullname" .) -}}
    {{- range $key, $name := $own -}}
      {{- if eq $name "node-local-dns" -}}
        {{- fail (printf "%s: expected another name than the node cache's, found %s" $key $name) -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- range $key, $name := merge (dict) $services $names -}}
  {{- if $name -}}
    {{- $pattern := hasKey $services $key | ternary "^[a-z]([-a-z0-9]*[a-z0-9])?$" "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" -}}
    {{- if or (gt (len $name) 63) (not (regexMatch $pattern $name)) -}}
      {{- fail (printf "%s: expected a DNS label of at most 63 characters%s, found %s" $key (hasKey $services $key | ternary ", a letter first" "") $name) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}
