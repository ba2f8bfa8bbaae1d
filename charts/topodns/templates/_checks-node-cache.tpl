{{/* The same for the node cache. */}}

{{- define "topodns.checkNodeCache" -}}
{{- $cache := .Values.nodeCache -}}
{{- include "topodns.checkLocalDns" . -}}
{{- include "topodns.checkUpstreamService" . -}}
{{- if and $cache.intercept (not (include "topodns.clusterAddresses" .)) -}}
  {{- fail "nodeCache.intercept: expected the address of the cluster DNS in nodeCache.dnsServer or service.clusterIP, found none; with intercept=false pods have to ask nodeCache.localDns" -}}
{{- end -}}
{{- $own := include "topodns.ownAddresses" . | lower | splitList "," | compact -}}
{{- if and (eq .Values.mode "replace") .Values.deployment.enabled $cache.intercept $cache.dnsServer $own -}}
  {{- $taken := false -}}
  {{- range $cache.dnsServer -}}{{- if has (lower .) $own -}}{{- $taken = true -}}{{- end -}}{{- end -}}
  {{- if not $taken -}}
    {{- fail (printf "nodeCache.dnsServer: expected an address of the release's Service among them, %s, found %s" (join "," $own) (join "," $cache.dnsServer)) -}}
  {{- end -}}
{{- end -}}
{{- $taken := dict "53" "DNS" -}}
{{- range $name := list "health" "ready" "metrics" "setupMetrics" -}}
  {{- $port := get $cache.ports $name | int | toString -}}
  {{- if hasKey $taken $port -}}
    {{- fail (printf "nodeCache.ports.%s: expected a port of its own, found %s, which %s has" $name $port (get $taken $port)) -}}
  {{- end -}}
  {{- $_ := set $taken $port $name -}}
{{- end -}}
{{- $rolling := $cache.updateStrategy.rollingUpdate -}}
{{- if and $rolling (ne $cache.updateStrategy.type "OnDelete") -}}
  {{- $surge := include "topodns.above0" (list $rolling.maxSurge 0) -}}
  {{- $unavailable := include "topodns.above0" (list $rolling.maxUnavailable 1) -}}
  {{- if eq $surge $unavailable -}}
    {{- fail (printf "nodeCache.updateStrategy: expected one of maxSurge and maxUnavailable above 0, found %s" (empty $surge | ternary "neither" "both")) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{- define "topodns.checkLocalDns" -}}
{{- $addresses := .Values.nodeCache.localDns -}}
{{- if not $addresses -}}
  {{- fail "nodeCache.localDns: expected an address for the node cache to listen on, such as 169.254.20.10, found none" -}}
{{- end -}}
{{- range $addresses -}}
  {{- if has . (include "topodns.clusterAddresses" $ | splitList ",") -}}
    {{- fail (printf "nodeCache.localDns: expected an address of its own, found %s, which is the cluster DNS" .) -}}
  {{- end -}}
  {{- if regexMatch "^(0|127|22[4-9]|2[3-5][0-9])\\.|^[0:]+1?$|^[fF]{2}[0-9a-fA-F]{2}:" . -}}
    {{- fail (printf "nodeCache.localDns: expected an address that pods can ask, found %s" .) -}}
  {{- end -}}
{{- end -}}
{{- if and (gt (len $addresses) 1) (eq (contains ":" (first $addresses)) (contains ":" (last $addresses))) -}}
  {{- fail (printf "nodeCache.localDns: expected at most one address of each family, found %s" (join " and " $addresses)) -}}
{{- end -}}
{{- end -}}

{{/* It has to be a Service of its own, with an address that no node cache takes. */}}
{{- define "topodns.checkUpstreamService" -}}
{{- $upstream := .Values.nodeCache.upstreamService -}}
{{- $taken := list -}}
{{- if or $upstream.create .Values.nodeCache.intercept -}}{{- $taken = list "kube-dns" "node-local-dns" -}}{{- end -}}
{{- if and $upstream.create .Values.deployment.enabled -}}
  {{- $taken = concat $taken (list (include "topodns.service" .) (printf "%s-metrics" (include "topodns.fullname" .))) -}}
{{- end -}}
{{- if has $upstream.name $taken -}}
  {{- fail (printf "nodeCache.upstreamService.name: expected a name of its own, found %s, which is that of another Service" $upstream.name) -}}
{{- end -}}
{{- end -}}
