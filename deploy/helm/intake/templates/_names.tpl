{{- define "intake.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "intake.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* The API's selector must not match the lake's pods. */ -}}
{{- define "intake.lakeSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-lake
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "intake.logBackupSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-log-backup
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "intake.labels" -}}
{{ include "intake.selector" . }}
app.kubernetes.io/version: {{ include "intake.version" . | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* Neither labels nor an image's tag may contain the plus sign in front of the commit. */ -}}
{{- define "intake.version" -}}
{{ .Chart.AppVersion | replace "+" "_" | trunc 63 }}
{{- end -}}

{{- define "intake.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ printf "%s@%s" .repository .digest }}
{{- else -}}
{{ printf "%s:%s" .repository (.tag | default (include "intake.version" $)) }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Restores a setting, because Helm reads numbers in a values file as floats, and `on` and `off` as booleans. */ -}}
{{- define "intake.setting" -}}
{{- $name := first . -}}
{{- $value := last . -}}
{{- if kindIs "bool" $value -}}
{{ hasPrefix "OTEL_" $name | ternary (toString $value) (ternary "on" "off" $value) }}
{{- else if and (kindIs "float64" $value) (eq $value (floor $value)) -}}
{{ printf "%.0f" $value }}
{{- else -}}
{{ toString $value }}
{{- end -}}
{{- end -}}

{{- /* The settings that serve and lake share. A secret's value is only ever referred to. */ -}}
{{- define "intake.settings" -}}
{{- range $name, $from := .Values.secretEnv }}
- name: {{ $name }}
  valueFrom: { secretKeyRef: { name: {{ $from.secret }}, key: {{ $from.key }} } }
{{- end }}
{{- range $name, $value := .Values.settings }}
- { name: {{ $name }}, value: {{ include "intake.setting" (list $name $value) | quote }} }
{{- end }}
{{- end -}}

{{- /* Fails if a setting must not be set in `settings` or in `secretEnv`. */ -}}
{{- define "intake.checkSettings" -}}
{{- $ownValue := dict "DATABASE_URL" "database" "LAKE_URL" "lake.url" "METRICS_PORT" "metrics.port" "REDIS_URL" "redis" "STOP_TIMEOUT_MS" "stopTimeoutSeconds" "TLS_CERT_FILE" "tls.secret" "TLS_KEY_FILE" "tls.secret" "TRUSTED_PROXY" "trustedProxy" }}
{{- range $place, $names := dict "settings" (keys (.Values.settings | default dict)) "secretEnv" (keys (.Values.secretEnv | default dict)) }}
{{- range $name := $names }}
{{- if hasKey $ownValue $name }}
{{- fail (printf "remove %s from %s: the value %s sets it" $name $place (get $ownValue $name)) }}
{{- else if hasPrefix "ADMIN_" $name }}
{{- fail (printf "remove %s from %s: the value admin serves the admin API, with its URL in a secret" $name $place) }}
{{- else if has $name (list "HOST" "PORT" "METRICS_HOST") }}
{{- fail (printf "remove %s from %s: services and probes expect the address and port that the chart has" $name $place) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.settings }}
{{- if or (regexMatch "(KEYS?|TOKEN|PASSWORD|SECRET|HEADERS)$" $name) (regexMatch "://[^/]*@" (toString $value)) }}
{{- fail (printf "move %s from settings to secretEnv: a secret must not be in plain text" $name) }}
{{- end }}
{{- if hasKey ($.Values.secretEnv | default dict) $name }}
{{- fail (printf "%s is both in settings and in secretEnv" $name) }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "intake.egressToDns" -}}
- ports:
    - { port: 53, protocol: UDP }
    - { port: 53, protocol: TCP }
{{- end -}}

{{- /* Without a secret for the store, the pod's identity is used, which EKS and GKE serve at link-local addresses, and others over HTTPS. */ -}}
{{- define "intake.egressToIdentity" -}}
{{- $lake := .Values.lake | default dict -}}
{{- if and $lake.url (not $lake.secret) -}}
- ports: [{ port: 443 }]
- ports: [{ port: 80 }, { port: 988 }]
  to:
    - ipBlock: { cidr: 169.254.0.0/16 }
    - ipBlock: { cidr: 'fd00:ec2::/64' }
{{- end -}}
{{- end -}}

{{- define "intake.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "intake.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{- /* Returns a pod that runs a command, as one line of JSON for NOTES. It also meets the "restricted" standard. */ -}}
{{- define "intake.operatorPod" -}}
{{- $container := dict "name" "intake-operator" "image" (include "intake.image" .) "args" (list "organisations" "create" "acme") -}}
{{- $_ := set $container "envFrom" (list (dict "secretRef" (dict "name" "intake-operator"))) -}}
{{- $_ := set $container "securityContext" (include "intake.containerSecurity" . | fromYaml) -}}
{{- $spec := dict "containers" (list $container) "securityContext" (include "intake.podSecurity" . | fromYaml) -}}
{{- $_ := set $spec "automountServiceAccountToken" false -}}
{{- with .Values.image.pullSecrets -}}
{{- $secrets := list -}}
{{- range . }}{{ $secrets = append $secrets (dict "name" .) }}{{ end -}}
{{- $_ := set $spec "imagePullSecrets" $secrets -}}
{{- end -}}
{{- with .Values.database.caSecret -}}
{{- $_ := set $container "volumeMounts" (list (dict "name" "database-ca" "mountPath" "/etc/intake/database" "readOnly" true)) -}}
{{- $_ := set $spec "volumes" (list (dict "name" "database-ca" "secret" (dict "secretName" . "defaultMode" 0440))) -}}
{{- end -}}
{{- dict "apiVersion" "v1" "spec" $spec | toJson -}}
{{- end -}}
