{{/* Names, labels and the image. */}}

{{- define "csi-provisioner.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Room for the longest suffix, -durable-intent, within 63 characters. */}}
{{- define "csi-provisioner.fullname" -}}
{{- $name := include "csi-provisioner.name" . -}}
{{- $full := printf "%s-%s" .Release.Name $name -}}
{{- if contains $name .Release.Name -}}{{- $full = .Release.Name -}}{{- end -}}
{{- default $full .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- end -}}

{{/* Objects outside of the release's namespace: two namespaces may have a release of one name. */}}
{{- define "csi-provisioner.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "csi-provisioner.fullname" .) -}}
{{- end -}}

{{- define "csi-provisioner.selectorLabels" -}}
app.kubernetes.io/name: {{ include "csi-provisioner.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "csi-provisioner.labels" -}}
{{ include "csi-provisioner.selectorLabels" . }}
app.kubernetes.io/component: provisioner
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "csi-provisioner.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "csi-provisioner.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "csi-provisioner.subjects" -}}
- kind: ServiceAccount
  name: {{ include "csi-provisioner.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "csi-provisioner.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The Lease of the driver as the program names it; the schema permits only names that need no more than this. */}}
{{- define "csi-provisioner.leaseName" -}}
{{- regexReplaceAll "[^a-zA-Z0-9-]" .Values.driver.name "-" -}}
{{- end -}}

{{/* off, uncertain or always: an off without quotes arrives as false. */}}
{{- define "csi-provisioner.durableIntent" -}}
{{- default "off" .Values.durableIntent.mode -}}
{{- end -}}

{{- define "csi-provisioner.scrapeAnnotations" -}}
prometheus.io/scrape: "true"
prometheus.io/port: {{ int .Values.http.port | quote }}
prometheus.io/path: {{ .Values.http.metricsPath | quote }}
{{- end -}}
