{{/*
Names, and the parts that several templates share. What other charts may include:
  holdfast.sidecar         the container, as an entry of initContainers
  holdfast.volumes         the volumes it mounts, as entries of volumes
  holdfast.podAnnotations  checksums, so that a changed configuration rolls the pods
Each takes this chart's own scope: `.` here, `.Subcharts.holdfast` in a chart that depends on it.
*/}}

{{- define "holdfast.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "holdfast.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "holdfast.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "holdfast.selectorLabels" -}}
app.kubernetes.io/name: {{ include "holdfast.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "holdfast.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "holdfast.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "holdfast.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "holdfast.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "holdfast.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* "true" when there can be more than one pod. */}}
{{- define "holdfast.isReplicated" -}}
{{- if eq .Values.mode "library" -}}
{{- else if .Values.autoscaling.enabled -}}
{{- if gt (int .Values.autoscaling.maxReplicas) 1 -}}true{{- end -}}
{{- else if gt (int .Values.replicaCount) 1 -}}true
{{- end -}}
{{- end -}}

{{/* What the listener for clients speaks. */}}
{{- define "holdfast.scheme" -}}
{{- ternary "https" "http" (not (empty (dig "tls" "cert_file" "" .Values.config))) -}}
{{- end -}}

{{- define "holdfast.secretName" -}}
{{- default (include "holdfast.fullname" .) .Values.sealing.existingSecret -}}
{{- end -}}

{{/* The entries of the Secret that hold sealing keys, first one first, as a JSON list. */}}
{{- define "holdfast.secretKeys" -}}
{{- $names := list -}}
{{- if .Values.sealing.existingSecret -}}
{{- $names = .Values.sealing.existingSecretKeys -}}
{{- else -}}
{{- range $i, $key := .Values.sealing.keys -}}
{{- $names = append $names (ternary "seal-key" (printf "seal-key-%d" (add1 $i)) (eq $i 0)) -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* The variable that carries the sealing key at a place in the ring. */}}
{{- define "holdfast.sealVariable" -}}
{{- ternary "HOLDFAST_SEAL_KEY" (printf "HOLDFAST_SEAL_KEY_%d" (add1 .)) (eq (int .) 0) -}}
{{- end -}}

{{/* Whole seconds of a duration as Holdfast writes them (50ms, 10s, 1h30m, or a number of seconds), rounded up. */}}
{{- define "holdfast.seconds" -}}
{{- $text := toString . -}}
{{- if not (regexMatch "^([0-9]+([.][0-9]+)?|([0-9]+([.][0-9]+)?(ms|s|m|h|d))+)$" $text) -}}
{{- fail (printf "%q is not a duration: write it like 500ms, 25s, 10m or 1h30m" $text) -}}
{{- end -}}
{{- $factors := dict "ms" 0.001 "" 1.0 "s" 1.0 "m" 60.0 "h" 3600.0 "d" 86400.0 -}}
{{- $seconds := 0.0 -}}
{{- range $part := regexFindAll "[0-9.]+(ms|s|m|h|d)?" $text -1 -}}
{{- $seconds = addf $seconds (mulf (float64 (regexFind "[0-9.]+" $part)) (get $factors (regexFind "[a-z]*$" $part))) -}}
{{- end -}}
{{- ceil $seconds | int64 -}}
{{- end -}}

{{/* How long the pod may take to stop. */}}
{{- define "holdfast.gracePeriodSeconds" -}}
{{- $config := fromYaml (include "holdfast.config" .) -}}
{{- $needed := add (int64 (include "holdfast.seconds" $config.lame_duck)) (int64 (include "holdfast.seconds" $config.drain)) 5 -}}
{{- $sum := "lame_duck + drain + 5" -}}
{{- if eq .Values.mode "sidecar" -}}
{{- $needed = add $needed (int64 .Values.sidecar.app.preStopSleepSeconds) (int64 .Values.sidecar.app.shutdownSeconds) -}}
{{- $sum = "preStopSleepSeconds + shutdownSeconds + lame_duck + drain + 5" -}}
{{- end -}}
{{- $given := int64 .Values.terminationGracePeriodSeconds -}}
{{- if and $given (lt $given $needed) -}}
{{- fail (printf "terminationGracePeriodSeconds is %d, but stopping takes up to %d s (%s): calls would be cut off. Set 0 to have it computed." $given $needed $sum) -}}
{{- end -}}
{{- max $given $needed -}}
{{- end -}}

{{/* holdfast.yaml: config, with what the chart decides filled in. */}}
{{- define "holdfast.config" -}}
{{- include "holdfast.validate" . -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "listen" (printf "%s:%d" .Values.ports.address (int .Values.ports.http)) -}}
{{- $_ := set $config "admin" (printf "%s:%d" .Values.ports.address (int .Values.ports.admin)) -}}
{{- if not (hasKey $config "drain") -}}
{{- $_ := set $config "drain" "25s" -}}
{{- end -}}
{{- if not (hasKey $config "lame_duck") -}}
{{- $_ := set $config "lame_duck" (ternary "5s" "0s" (eq .Values.mode "standalone")) -}}
{{- end -}}
{{- if and (eq .Values.mode "sidecar") (not $config.upstreams) -}}
{{- $url := printf "http://127.0.0.1:%d%s" (int .Values.sidecar.app.port) .Values.sidecar.app.path -}}
{{- $_ := set $config "upstreams" (dict "app" (dict "url" $url)) -}}
{{- end -}}
{{- $keys := list -}}
{{- range $i, $name := fromJsonArray (include "holdfast.secretKeys" .) -}}
{{- $keys = append $keys (printf "${%s}" (include "holdfast.sealVariable" $i)) -}}
{{- end -}}
{{- if $keys -}}
{{- $_ := set $config "sealing" (merge (dict "keys" $keys) (default dict $config.sealing)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "holdfast.podAnnotations" -}}
checksum/config: {{ include "holdfast.config" . | sha256sum }}
{{- if and .Values.sealing.keys (not .Values.sealing.existingSecret) }}
checksum/sealing: {{ .Values.sealing.keys | toJson | sha256sum }}
{{- end }}
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "holdfast.volumes" -}}
- name: holdfast-config
  configMap:
    name: {{ include "holdfast.fullname" . | quote }}
- name: holdfast-tmp
  emptyDir:
    medium: Memory
    sizeLimit: 16Mi
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Holdfast as a native sidecar: started before the application, stopped after it, restarted by itself. */}}
{{- define "holdfast.sidecar" -}}
- restartPolicy: Always
  {{- include "holdfast.container" . | nindent 2 }}
{{- end -}}

{{/* The container itself, the same in every mode. Security is set here, so that it holds in any pod. */}}
{{- define "holdfast.container" -}}
name: holdfast
image: {{ include "holdfast.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args:
  - serve
  - --config
  - /etc/holdfast/holdfast.yaml
{{- $secret := include "holdfast.secretName" . }}
{{- $keys := fromJsonArray (include "holdfast.secretKeys" .) }}
{{- if or $keys .Values.extraEnv }}
env:
  {{- range $i, $key := $keys }}
  - name: {{ include "holdfast.sealVariable" $i }}
    valueFrom:
      secretKeyRef:
        name: {{ $secret | quote }}
        key: {{ $key | quote }}
  {{- end }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
ports:
  - name: http
    containerPort: {{ .Values.ports.http }}
    protocol: TCP
  - name: admin
    containerPort: {{ .Values.ports.admin }}
    protocol: TCP
startupProbe:
  httpGet:
    path: /readyz
    port: {{ .Values.ports.admin }}
  {{- toYaml .Values.probes.startup | nindent 2 }}
livenessProbe:
  httpGet:
    path: /livez
    port: {{ .Values.ports.admin }}
  {{- toYaml .Values.probes.liveness | nindent 2 }}
readinessProbe:
  httpGet:
    path: /readyz
    port: {{ .Values.ports.admin }}
  {{- toYaml .Values.probes.readiness | nindent 2 }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
volumeMounts:
  - name: holdfast-config
    mountPath: /etc/holdfast
    readOnly: true
  - name: holdfast-tmp
    mountPath: /tmp
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
