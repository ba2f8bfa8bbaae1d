{{/* Values that make no sense together end here with a sentence; what one value alone may be is in values.schema.json. */}}

{{- define "topodns.check" -}}
{{- if not (or .Values.deployment.enabled .Values.nodeCache.enabled .Values.locator.enabled) -}}
  {{- fail "deployment.enabled, nodeCache.enabled and locator.enabled: expected one of them at least, found none" -}}
{{- end -}}
{{- include "topodns.checkCoredns" . -}}
{{- include "topodns.checkMode" . -}}
{{- include "topodns.checkLabels" . -}}
{{- include "topodns.checkNames" . -}}
{{- include "topodns.checkServers" . -}}
{{- include "topodns.checkScaling" . -}}
{{- if .Values.nodeCache.enabled -}}{{- include "topodns.checkNodeCache" . -}}{{- end -}}
{{- if and (eq .Values.deployment.dnsPolicy "None") (not .Values.deployment.dnsConfig) -}}
  {{- fail "deployment.dnsPolicy None: expected nameservers in deployment.dnsConfig, found none" -}}
{{- end -}}
{{- if and .Values.service.clusterIPs .Values.service.clusterIP (ne (first .Values.service.clusterIPs) .Values.service.clusterIP) -}}
  {{- fail (printf "service.clusterIP: expected the first of service.clusterIPs, %s, found %s" (first .Values.service.clusterIPs) .Values.service.clusterIP) -}}
{{- end -}}
{{- if and (eq .Values.mode "replace") (eq .Values.service.clusterIP "None") -}}
  {{- fail "service.clusterIP: expected an address for the cluster DNS, which pods ask by it, found None" -}}
{{- end -}}
{{- range $each := list (list "env" .Values.env "NODE_NAME") (list "nodeCache.env" .Values.nodeCache.env "NODE_NAME" "LOCAL_ADDRESSES") -}}
  {{- range index $each 1 -}}
    {{- if has .name (rest (rest $each)) -}}
      {{- fail (printf "%s: expected other variables than the chart's own, found %s" (first $each) .name) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if and (has "Deny" .Values.admissionPolicy.actions) (has "Warn" .Values.admissionPolicy.actions) -}}
  {{- fail "admissionPolicy.actions: expected Deny or Warn, found both: a denied user gets the reason" -}}
{{- end -}}
{{- if and .Values.admissionPolicy.enabled (semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version) -}}
  {{- fail (printf "admissionPolicy.enabled: expected Kubernetes 1.30 or newer, found %s: set it to false" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and .Values.locator.enabled .Values.locator.crds (semverCompare "<1.31.0-0" .Capabilities.KubeVersion.Version) -}}
  {{- fail (printf "locator.crds: expected Kubernetes 1.31 or newer, found %s" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and (include "topodns.makesClusterDns" .) (not (include "topodns.ownAddresses" .)) -}}
  {{- fail (printf "service.clusterIP: expected the address of the cluster DNS, which is clusterDNS of the kubelets (kubeadm: 10.96.0.10), found none, and the cluster has neither Service %s/%s nor kubeadm's ConfigMap kube-system/kubelet-config to take it from; helm template and --dry-run ask no cluster" .Release.Namespace (include "topodns.service" .)) -}}
{{- end -}}
{{- end -}}

{{/* Values of CoreDNS's chart that this one has under another name. */}}
{{- define "topodns.checkCoredns" -}}
{{- if regexMatch "^(docker\\.io/|registry\\.k8s\\.io/)?coredns/coredns$" .Values.image.repository -}}
  {{- fail (printf "image.repository: expected an image of topodns, found %s, which is CoreDNS's" .Values.image.repository) -}}
{{- end -}}
{{- if and (eq (toString .Values.isClusterService) "false") (ne .Values.mode "beside") -}}
  {{- fail "isClusterService: expected true in mode replace, found false: set mode to beside" -}}
{{- end -}}
{{- with .Values.k8sAppLabelOverride -}}
  {{- if or (ne . "kube-dns") (ne $.Values.mode "replace") -}}
    {{- fail (printf "k8sAppLabelOverride: expected kube-dns, and mode replace, whose Pods have that label, found %s in mode %s: other labels are set by podLabels, with deployment.selector and service.selector" . $.Values.mode) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{- define "topodns.checkServers" -}}
{{- if and .Values.deployment.enabled (not .Values.servers) (not .Values.deployment.skipConfig) -}}
  {{- fail "servers: expected at least one server block, found none" -}}
{{- end -}}
{{- $zones := dict -}}
{{- $taken := dict -}}
{{- range $index, $server := .Values.servers -}}
  {{- $port := default 53 .port | int -}}
  {{- $here := printf "servers[%d]" $index -}}
  {{- $views := false -}}
  {{- range .plugins -}}{{- if eq .name "view" -}}{{- $views = true -}}{{- end -}}{{- end -}}
  {{- range (default (list (dict)) .zones) -}}
    {{- $zone := default "." .zone -}}
    {{- if not (has (default "" .scheme) (list "" "dns://" "tls://")) -}}
      {{- fail (printf "%s: expected the scheme dns://, tls:// or none, found %s" $here .scheme) -}}
    {{- end -}}
    {{- $key := printf "%s:%d" (lower $zone | trimSuffix "." | default ".") $port -}}
    {{- if not $views -}}
      {{- with get $zones $key -}}
        {{- fail (printf "%s: expected each zone once for a port, found %s on port %d in %s as well" $here $zone $port .) -}}
      {{- end -}}
      {{- $_ := set $zones $key $here -}}
    {{- end -}}
  {{- end -}}
  {{- $_ := set $taken (toString $port) (printf "DNS of %s" $here) -}}
{{- end -}}
{{- $http := dict "health" 8080 "ready" 8181 "prometheus" 9153 -}}
{{- range $name := list "health" "ready" "prometheus" -}}
  {{- $port := include "topodns.pluginPort" (list $ $name (get $http $name)) -}}
  {{- if $port -}}
    {{- if hasKey $taken $port -}}
      {{- fail (printf "servers: expected a port of its own for %s, found %s, which %s has" $name $port (get $taken $port)) -}}
    {{- end -}}
    {{- $_ := set $taken $port $name -}}
  {{- end -}}
{{- end -}}
{{- $published := dict -}}
{{- range (include "topodns.dnsPorts" . | fromJsonArray) -}}
  {{- $port := .servicePort | int | toString -}}
  {{- if hasKey $published $port -}}
    {{- fail (printf "servers: expected each servicePort once, found %s for ports %v and %v" $port (get $published $port) .port) -}}
  {{- end -}}
  {{- $_ := set $published $port .port -}}
{{- end -}}
{{- if and .Values.deployment.enabled (not .Values.deployment.skipConfig) -}}
  {{- if and .Values.livenessProbe.enabled (not (include "topodns.pluginPort" (list . "health" 8080))) -}}
    {{- fail "livenessProbe.enabled: expected the plugin health in one of servers, found it in none" -}}
  {{- end -}}
  {{- if and .Values.readinessProbe.enabled (not (include "topodns.pluginPort" (list . "ready" 8181))) -}}
    {{- fail "readinessProbe.enabled: expected the plugin ready in one of servers, found it in none" -}}
  {{- end -}}
{{- end -}}
{{- $files := list "Corefile" -}}
{{- range .Values.zoneFiles -}}
  {{- if has .filename $files -}}{{- fail (printf "zoneFiles: expected each filename once, found %s again" .filename) -}}{{- end -}}
  {{- $files = append $files .filename -}}
{{- end -}}
{{- end -}}

{{- define "topodns.checkScaling" -}}
{{- if and (eq .Values.deployment.kind "DaemonSet") (or .Values.hpa.enabled .Values.autoscaler.enabled) -}}
  {{- fail "deployment.kind: expected Deployment with hpa.enabled or autoscaler.enabled, found DaemonSet" -}}
{{- end -}}
{{- if and .Values.hpa.enabled .Values.autoscaler.enabled -}}
  {{- fail "hpa.enabled and autoscaler.enabled: expected one of them at most, found both" -}}
{{- end -}}
{{- if and .Values.hpa.enabled (gt (int .Values.hpa.minReplicas) (int .Values.hpa.maxReplicas)) -}}
  {{- fail (printf "hpa.minReplicas: expected at most maxReplicas, %d, found %d" (int .Values.hpa.maxReplicas) (int .Values.hpa.minReplicas)) -}}
{{- end -}}
{{- $least := int .Values.autoscaler.min -}}
{{- $most := int .Values.autoscaler.max -}}
{{- if and .Values.autoscaler.enabled $most (gt $least $most) -}}
  {{- fail (printf "autoscaler.min: expected at most max, %d, found %d" $most $least) -}}
{{- end -}}
{{- $rolling := .Values.rollingUpdate -}}
{{- if not (or (include "topodns.above0" (list $rolling.maxSurge "25%")) (include "topodns.above0" (list $rolling.maxUnavailable "25%"))) -}}
  {{- fail "rollingUpdate: expected maxSurge or maxUnavailable above 0, found neither" -}}
{{- end -}}
{{- if and (hasKey .Values.podDisruptionBudget "minAvailable") (hasKey .Values.podDisruptionBudget "maxUnavailable") -}}
  {{- fail "podDisruptionBudget: expected minAvailable or maxUnavailable, found both" -}}
{{- end -}}
{{- end -}}

{{/* Not empty where a number or a share is above 0. Argument: [it, what the API takes where there is none]. */}}
{{- define "topodns.above0" -}}
{{- $given := kindIs "invalid" (index . 0) | ternary (index . 1) (index . 0) -}}
{{- if gt (toString $given | trimSuffix "%" | int) 0 -}}yes{{- end -}}
{{- end -}}
