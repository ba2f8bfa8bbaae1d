{{/* The Corefile of `servers`, and what the rest of the chart has to know of it. */}}

{{- define "topodns.corefile" -}}
{{- range $name, $line := .Values.extraConfig }}
{{ $name }}{{ with ($line).parameters }} {{ include "topodns.parameters" . }}{{ end }}
{{- end }}
{{- range .Values.servers }}
{{ $port := default 53 .port }}
{{- $keys := list }}
{{- range (default (list (dict)) .zones) }}
{{- $keys = append $keys (printf "%s%s:%v" (default "" .scheme) (default "." .zone) $port) }}
{{- end }}
{{- join " " $keys }} {
{{- range .plugins }}
    {{ .name }}{{ if ne (toString (default "" .parameters)) "" }} {{ include "topodns.parameters" .parameters }}{{ end }}
    {{- with include "topodns.configBlock" (list $ .) }} {
{{ trim . | indent 8 }}
    }
    {{- end }}
{{- end }}
}
{{- end }}
{{- end -}}

{{/* The options of a plugin. Argument: [root, plugin]. */}}
{{- define "topodns.configBlock" -}}
{{- $plugin := index . 1 -}}
{{- $block := default "" $plugin.configBlock -}}
{{- if and (eq $plugin.name "topology") (not (include "topodns.locate" $block)) -}}
{{- with (index . 0).Values -}}
{{- if .locator.enabled -}}
{{- $block = printf "%s\nlocate nodes podcidr %s slices" $block .locator.kind -}}
{{- else if not .locatePods -}}
{{- $block = printf "%s\nlocate nodes podcidr slices" $block -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (eq $plugin.name "kubernetes") (index . 0).Values.snapshot.enabled (not (regexMatch "\n[ \t]*(snapshot|manifests)[ \t]" (printf "\n%s\n" $block))) -}}
{{- $zone := regexFind "^\\S+" (toString (default "" $plugin.parameters)) | trimSuffix "." | default "cluster" -}}
{{- $block = printf "%s\nsnapshot /var/lib/topodns/%s %s" $block $zone (index . 0).Values.snapshot.parameters | trim -}}
{{- end -}}
{{- trim $block -}}
{{- end -}}

{{/* The line `locate` in the options of `topology`; "" where it has none. Argument: the options. */}}
{{- define "topodns.locate" -}}
{{- regexFind "\n[ \t]*locate[ \t][^#\n]*" (printf "\n%s\n" .) -}}
{{- end -}}

{{/* Each number of a file of values is a float to helm, which prints a million as 1e+06. */}}
{{- define "topodns.parameters" -}}
{{- if and (kindIs "float64" .) (eq (toString .) (toString (floor .))) -}}{{- printf "%.0f" . -}}{{- else -}}{{- . -}}{{- end -}}
{{- end -}}

{{/* The ports that DNS is served on, as JSON, in the order of `servers`: [{port, servicePort, nodePort, hostPort, udp, tcp}].
DNS over TLS (tls://) needs TCP only. */}}
{{- define "topodns.dnsPorts" -}}
{{- $found := dict -}}
{{- $order := list -}}
{{- range .Values.servers -}}
  {{- $port := default 53 .port | int -}}
  {{- $known := default (dict "port" $port "servicePort" $port "udp" false "tcp" false) (get $found (toString $port)) -}}
  {{- range (default (list (dict)) .zones) -}}
    {{- $tls := eq (default "" .scheme) "tls://" -}}
    {{- if not $tls -}}{{- $_ := set $known "udp" true -}}{{- end -}}
    {{- if or $tls (ne (toString .use_tcp) "false") -}}{{- $_ := set $known "tcp" true -}}{{- end -}}
  {{- end -}}
  {{- with .servicePort -}}{{- $_ := set $known "servicePort" (int .) -}}{{- end -}}
  {{- with .nodePort -}}{{- $_ := set $known "nodePort" (int .) -}}{{- end -}}
  {{- with .hostPort -}}{{- $_ := set $known "hostPort" (int .) -}}{{- end -}}
  {{- if not (hasKey $found (toString $port)) -}}{{- $order = append $order (toString $port) -}}{{- end -}}
  {{- $_ := set $found (toString $port) $known -}}
{{- end -}}
{{- $ports := list -}}
{{- range $order -}}{{- $ports = append $ports (get $found .) -}}{{- end -}}
{{- toJson $ports -}}
{{- end -}}

{{/* dns and dns-tcp for port 53, dns-5353 and dns-tcp-5353 for another. Argument: [dns or dns-tcp, port]. */}}
{{- define "topodns.portName" -}}
{{- $port := index . 1 | int -}}
{{- eq $port 53 | ternary (index . 0) (printf "%s-%d" (index . 0) $port) -}}
{{- end -}}

{{/* The port of the first plugin of this name, "" where there is none. Argument: [root, name, port by default]. */}}
{{- define "topodns.pluginPort" -}}
{{- $name := index . 1 -}}
{{- $default := index . 2 -}}
{{- $ports := list -}}
{{- range (index . 0).Values.servers -}}
  {{- range .plugins -}}
    {{- if eq .name $name -}}
      {{- $first := regexFind "^\\S+" (toString (default "" .parameters)) -}}
      {{- $ports = append $ports (default (toString $default) (regexFind "[0-9]+$" (regexFind ":[0-9]+$" $first))) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- with $ports -}}{{- first . -}}{{- end -}}
{{- end -}}

{{/* The first zone that `kubernetes` serves. */}}
{{- define "topodns.clusterDomain" -}}
{{- $domain := "" -}}
{{- range .Values.servers -}}
  {{- range .plugins -}}
    {{- if and (eq .name "kubernetes") (not $domain) -}}
      {{- $domain = regexFind "^\\S+" (toString (default "" .parameters)) | trimSuffix "." -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- default "cluster.local" $domain -}}
{{- end -}}

{{/* The kinds beside Services, EndpointSlices and Namespaces that this Corefile has the server watch, with commas. */}}
{{- define "topodns.watched" -}}
{{- $kinds := .Values.rbac.additional -}}
{{- range .Values.servers -}}
  {{- $keyed := false -}}
  {{- range .plugins }}{{ if eq .name "topology" }}{{ $keyed = true }}{{ end }}{{ end -}}
  {{- range .plugins -}}
    {{- $block := printf "\n%s\n" (include "topodns.configBlock" (list $ .)) -}}
    {{- if eq .name "topology" -}}
      {{- $locate := include "topodns.locate" $block -}}
      {{- $byLocator := regexMatch "\\b(node|pod)locator\\b" $locate -}}
      {{- if or (not $byLocator) (regexMatch "\\b(nodes|podcidr)\\b" $locate) -}}{{- $kinds = append $kinds "nodes" -}}{{- end -}}
      {{- if regexMatch "\\bnodelocator\\b" $locate -}}{{- $kinds = append $kinds "nodelocators" -}}{{- end -}}
      {{- if regexMatch "\\bpodlocator\\b" $locate -}}{{- $kinds = append $kinds "podlocators" -}}{{- end -}}
      {{- if $locate | empty | ternary $.Values.locatePods (regexMatch "\\bpods\\b" $locate) -}}{{- $kinds = append $kinds "pods" -}}{{- end -}}
    {{- else if eq .name "kubernetes" -}}
      {{- if regexMatch "\n[ \t]*pods[ \t]+verified\\b" $block -}}{{- $kinds = append $kinds "pods" -}}{{- end -}}
      {{- if regexMatch "\n[ \t]*multicluster\\b" $block -}}{{- $kinds = append $kinds "serviceimports" -}}
        {{- if and $keyed (not (regexMatch "\n[ \t]*cluster_id\\b" $block)) -}}{{- $kinds = append $kinds "clusterproperties" -}}{{- end -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- uniq $kinds | join "," -}}
{{- end -}}
