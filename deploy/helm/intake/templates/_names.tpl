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

{{- define "intake.labels" -}}
{{ include "intake.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "intake.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ printf "%s@%s" .repository .digest }}
{{- else -}}
{{ printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}
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
