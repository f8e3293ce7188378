{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{- define "tidegate.name" -}}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{- end }}

{{- define "tidegate.labels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name | quote }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | quote }}
{{ include "tidegate.selector" . }}
{{- end }}

{{- define "tidegate.selector" -}}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component | quote }}
{{- end }}

{{- define "tidegate.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}{{ $image.repository }}@{{ $image.digest }}
{{- else -}}{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}{{- end -}}
{{- end }}

{{/* A setting's text: Helm reads whole numbers as floats and would print 1000000 as 1e+06. */}}
{{- define "tidegate.text" -}}
{{- if kindIs "float64" . -}}{{ int64 . }}{{- else -}}{{ . }}{{- end -}}
{{- end }}

{{/* The value or valueFrom of one address. `of`: what values say; `name`: where they say it; `dev`: the chart's own. */}}
{{- define "tidegate.address" -}}
{{- if .of.existingSecret.name }}
valueFrom: {secretKeyRef: {name: {{ .of.existingSecret.name | quote }}, key: {{ .of.existingSecret.key | quote }}}}
{{- else if .of.url }}
value: {{ .of.url | quote }}
{{- else if .root.Values.dev.enabled }}
value: {{ .dev | quote }}
{{- else }}
{{- fail (printf "%s is not given: set %s.existingSecret.name (a Secret with the URL) or %s.url, or dev.enabled=true to try Tidegate with stores of its own" .name .name .name) }}
{{- end }}
{{- end }}

{{- define "tidegate.keysSecret" -}}
{{- required "keys.existingSecret is not given: make keys with `tidegatectl keys new FOLDER`, then `kubectl create secret generic tidegate-keys --from-file=FOLDER`, and set keys.existingSecret=tidegate-keys" .Values.keys.existingSecret -}}
{{- end }}

{{- define "tidegate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "tidegate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Environment of the stores: only what the program uses. */}}
{{- define "tidegate.stores" -}}
{{- $root := .root -}}
{{- $release := include "tidegate.name" $root -}}
- name: TIDEGATE_NATS_URL
  {{- include "tidegate.address" (dict "root" $root "of" $root.Values.nats "name" "nats" "dev" (printf "nats://%s-nats:4222" $release)) | nindent 2 }}
{{- if $root.Values.nats.nkeys }}
- {name: TIDEGATE_NATS_KEYS, value: /keys}
{{- end }}
{{- if $root.Values.ca.existingSecret.name }}
- {name: TIDEGATE_NATS_CA, value: /ca/ca.crt}
{{- end }}
{{- with $root.Values.nats.serverName }}
- {name: TIDEGATE_NATS_SERVER_NAME, value: {{ . | quote }}}
{{- end }}
{{- if eq .daemon "reserve" }}
- name: TIDEGATE_RESERVE_REDIS_URL
  {{- include "tidegate.address" (dict "root" $root "of" $root.Values.redis.gate "name" "redis.gate" "dev" (printf "redis://%s-redis:6379" $release)) | nindent 2 }}
{{- else if eq .daemon "invariant" }}
- name: TIDEGATE_INVARIANT_REDIS_URL
  {{- include "tidegate.address" (dict "root" $root "of" $root.Values.redis.audit "name" "redis.audit" "dev" (printf "redis://%s-redis:6379" $release)) | nindent 2 }}
- name: TIDEGATE_INVARIANT_POSTGRES_URL
  {{- include "tidegate.address" (dict "root" $root "of" $root.Values.postgres.audit "name" "postgres.audit" "dev" (printf "host=%s-postgres user=postgres dbname=tidegate" $release)) | nindent 2 }}
{{- else if eq .daemon "ledger" }}
- name: TIDEGATE_LEDGER_POSTGRES_URL
  {{- include "tidegate.address" (dict "root" $root "of" $root.Values.postgres.ledger "name" "postgres.ledger" "dev" (printf "host=%s-postgres user=postgres dbname=tidegate" $release)) | nindent 2 }}
{{- end }}
{{- end }}

{{/* The container that brings the schema up to date; ends at once when it is. */}}
{{- define "tidegate.migration" -}}
{{- $root := .root -}}
name: migrate
image: {{ include "tidegate.image" $root | quote }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
command: [/usr/bin/tidegate-ledger, --migrate]
env:
  - name: TIDEGATE_LEDGER_POSTGRES_URL
    {{- include "tidegate.address" (dict "root" $root "of" $root.Values.postgres.migrate "name" "postgres.migrate" "dev" (printf "host=%s-postgres user=postgres dbname=tidegate" (include "tidegate.name" $root))) | nindent 4 }}
securityContext: {{- include "tidegate.containerSecurity" $root | nindent 2 }}
resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {memory: 128Mi}}
{{- if $root.Values.ca.existingSecret.name }}
volumeMounts:
  - {{ include "tidegate.caMount" $root }}
{{- end }}
{{- end }}

{{- define "tidegate.caMount" -}}{name: ca, mountPath: /ca, readOnly: true}{{- end }}

{{/* The authorities, always at /ca/ca.crt. */}}
{{- define "tidegate.caVolume" -}}
{{- $secret := .Values.ca.existingSecret -}}
name: ca
secret:
  secretName: {{ $secret.name | quote }}
  items: [{key: {{ $secret.key | quote }}, path: ca.crt}]
{{- end }}

{{/* Who a service is on the bus: its daemon, or a role of the edge. */}}
{{- define "tidegate.identity" -}}
{{- $role := get (.settings | default dict) "role" | default "both" -}}
{{- if and (eq .daemon "edge") (ne $role "both") -}}edge-{{ $role }}{{- else -}}{{ .daemon }}{{- end -}}
{{- end }}

{{/* `identity`: whose NKey is among the files, where NATS asks for one. */}}
{{- define "tidegate.keysVolume" -}}
name: keys
secret:
  secretName: {{ include "tidegate.keysSecret" .root | quote }}
  defaultMode: 0440
  items:
  {{- range .keys }}
    - {key: {{ . | quote }}, path: {{ . | quote }}}
  {{- end }}
  {{- if .root.Values.nats.nkeys }}
    - {key: "nats-{{ .identity }}", path: "nats-{{ .identity }}"}
  {{- end }}
{{- end }}
