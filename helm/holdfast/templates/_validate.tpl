{{/* What the chart refuses to install, each with a way out. Types are values.schema.json's; the rest of config is Holdfast's. */}}

{{- define "holdfast.validate" -}}
{{- $values := .Values -}}
{{- $keysFile := dig "sealing" "keys_file" "" $values.config -}}
{{- $secretKeys := fromJsonArray (include "holdfast.secretKeys" .) -}}

{{- range $key := list "listen" "admin" -}}
{{- if hasKey $values.config $key -}}
{{- fail (printf "config.%s is set by the chart: change ports.http and ports.admin instead" $key) -}}
{{- end -}}
{{- end -}}

{{- if dig "sealing" "keys" "" $values.config -}}
{{- fail "config.sealing.keys would put sealing keys into a ConfigMap: use sealing.existingSecret or sealing.keys" -}}
{{- end -}}

{{- if and $values.sealing.existingSecret $values.sealing.keys -}}
{{- fail "sealing.existingSecret and sealing.keys are both set: choose one" -}}
{{- end -}}

{{- if and $values.sealing.existingSecret (not $secretKeys) -}}
{{- fail "sealing.existingSecretKeys is empty: name the entries of the Secret that hold sealing keys" -}}
{{- end -}}

{{- if and (include "holdfast.isReplicated" .) (not $secretKeys) (not $keysFile) -}}
{{- fail "more than one replica needs a sealing key that all share, or one replica cannot read what another has sealed: set sealing.existingSecret (or sealing.keys; `holdfast keygen` prints one)" -}}
{{- end -}}

{{- if and (not $values.config.upstreams) (ne $values.mode "sidecar") -}}
{{- fail "config.upstreams is empty: name at least one legacy server, for example --set config.upstreams.crm.url=http://crm:9000/mcp" -}}
{{- end -}}

{{- if and (eq $values.mode "sidecar") (not $values.sidecar.app.image) -}}
{{- fail "mode sidecar needs sidecar.app.image, the image of the legacy MCP server" -}}
{{- end -}}

{{- if eq (int $values.ports.http) (int $values.ports.admin) -}}
{{- fail "ports.http and ports.admin are the same" -}}
{{- end -}}

{{- if and (eq $values.mode "sidecar") (has (int $values.sidecar.app.port) (list (int $values.ports.http) (int $values.ports.admin))) -}}
{{- fail (printf "sidecar.app.port %d is also one of Holdfast's ports, and they share one pod: change ports" (int $values.sidecar.app.port)) -}}
{{- end -}}
{{- end -}}
