{{/* The legacy server of mode sidecar, as an entry of containers. */}}
{{- define "holdfast.app" -}}
{{- $app := .Values.sidecar.app -}}
- name: app
  image: {{ $app.image | quote }}
  imagePullPolicy: {{ $app.imagePullPolicy }}
  {{- with $app.command }}
  command:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $app.args }}
  args:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $app.env }}
  env:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $app.envFrom }}
  envFrom:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - name: app
      containerPort: {{ $app.port }}
      protocol: TCP
  {{- /* Clusters before 1.30 drop `sleep` and then refuse the empty hook. */}}
  {{- if and $app.preStopSleepSeconds (semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version) }}
  lifecycle:
    preStop:
      sleep:
        seconds: {{ $app.preStopSleepSeconds }}
  {{- end }}
  {{- with $app.livenessProbe }}
  livenessProbe:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $app.readinessProbe }}
  readinessProbe:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $app.startupProbe }}
  startupProbe:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $app.volumeMounts }}
  volumeMounts:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $app.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $app.securityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
