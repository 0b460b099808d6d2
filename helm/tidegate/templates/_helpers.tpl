{{- define "tidegate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* 47 characters leave room for "-node", a dash and the 10 digits of a revision within the 63 of a label. A StatefulSet's pods have
a label with its name and revision; with a longer one they could not be created. */}}
{{- define "tidegate.fullname" -}}
{{- $name := include "tidegate.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 47 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 47 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 47 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tidegate.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tidegate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tidegate.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "tidegate.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: tidegate
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "tidegate.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "tidegate.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name must name an account when serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "tidegate.gateSecretName" -}}
{{- default (printf "%s-gate" (include "tidegate.fullname" .)) .Values.gate.existingSecret -}}
{{- end -}}

{{- define "tidegate.image" -}}
{{- $image := .Values.image -}}
{{- $name := $image.repository -}}
{{- if $image.registry -}}{{- $name = printf "%s/%s" $image.registry $name -}}{{- end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $name $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Settings that all processes share, as a map. The user's `settings` override them. */}}
{{- define "tidegate.settings" -}}
{{- $gateUrl := default (printf "http://%s-api:%v" (include "tidegate.fullname" .) .Values.api.service.port) .Values.gate.url -}}
{{- $settings := dict
  "TIDEGATE_KAFKA__BOOTSTRAP_SERVERS" .Values.kafka.bootstrapServers
  "TIDEGATE_KAFKA__GROUP_PROTOCOL" .Values.kafka.groupProtocol
  "TIDEGATE_KAFKA__SECURITY_PROTOCOL" .Values.kafka.securityProtocol
  "TIDEGATE_KAFKA__ALLOW_PLAINTEXT" (toString .Values.kafka.allowPlaintext)
  "TIDEGATE_DYNAMODB__TABLE_PREFIX" .Values.dynamodb.tablePrefix
  "TIDEGATE_GATE__URL" $gateUrl
  "TIDEGATE_GATE__SECRET_FILE" "/etc/tidegate/gate/secret"
  "TIDEGATE_HEALTH__HOST" "0.0.0.0"
  "TIDEGATE_HEALTH__PORT" (toString .Values.node.healthPort)
  "TIDEGATE_LAUNCHER__END_WAIT_S" (toString .Values.node.programsEndSeconds)
  "TIDEGATE_API__HOST" "0.0.0.0"
  "TIDEGATE_API__PORT" (toString .Values.api.port)
-}}
{{- with .Values.kafka.saslMechanism -}}{{- $_ := set $settings "TIDEGATE_KAFKA__SASL_MECHANISM" . -}}{{- end -}}
{{- with .Values.kafka.saslUsername -}}{{- $_ := set $settings "TIDEGATE_KAFKA__SASL_USERNAME" . -}}{{- end -}}
{{- with .Values.kafka.sslCaLocation -}}{{- $_ := set $settings "TIDEGATE_KAFKA__SSL_CA_LOCATION" . -}}{{- end -}}
{{- with .Values.dynamodb.endpointUrl -}}{{- $_ := set $settings "TIDEGATE_DYNAMODB__ENDPOINT_URL" . -}}{{- end -}}
{{- /* Both: the SDK asks for a role's keys in the one, which EKS replaces by the cluster's own region where pods have a role by their account. */ -}}
{{- with .Values.dynamodb.region -}}
{{- $_ := set $settings "AWS_DEFAULT_REGION" . -}}
{{- $_ := set $settings "TIDEGATE_DYNAMODB__REGION" . -}}
{{- end -}}
{{- merge (deepCopy .Values.settings) $settings | toYaml -}}
{{- end -}}

{{- define "tidegate.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "tidegate.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Environment of a container: later entries override earlier ones. Takes (dict "root" $ "configMap" "its name"). */}}
{{- define "tidegate.environment" -}}
envFrom:
  - configMapRef:
      name: {{ .configMap }}
  {{- with .root.Values.extraEnvFrom }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Parts that serving containers share: image, environment, gate secret, writable folders. */}}
{{- define "tidegate.servingContainer" -}}
image: {{ include "tidegate.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- include "tidegate.containerSecurityContext" . | nindent 2 }}
{{ include "tidegate.environment" (dict "root" . "configMap" (include "tidegate.fullname" .)) }}
volumeMounts:
  - name: gate
    mountPath: /etc/tidegate/gate
    readOnly: true
  - name: data
    mountPath: /var/lib/tidegate
  - name: tmp
    mountPath: /tmp
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Volumes of a serving pod. Takes (dict "root" $ "dataSizeLimit" "2Gi" "tmpSizeLimit" "2Gi"). */}}
{{- define "tidegate.volumes" -}}
- name: gate
  secret:
    secretName: {{ include "tidegate.gateSecretName" .root }}
    defaultMode: 0440
    items:
      - key: {{ .root.Values.gate.secretKey }}
        path: secret
- name: data
  emptyDir:
    sizeLimit: {{ .dataSizeLimit }}
- name: tmp
  emptyDir:
    sizeLimit: {{ .tmpSizeLimit }}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Machines on which a pod may run. Takes the values of node, api or init. */}}
{{- define "tidegate.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
