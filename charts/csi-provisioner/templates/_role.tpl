{{/*
A role and its binding. Takes a dictionary: root (the chart's context), suffix of the name, rules (YAML text), and namespace
for a role of one namespace, or none for one of the cluster; component, if it is not csi-provisioner that needs it.
*/}}
{{- define "csi-provisioner.role" -}}
{{- $kind := ternary "Role" "ClusterRole" (hasKey . "namespace") -}}
{{- $own := eq (default "" .namespace) .root.Release.Namespace -}}
{{- $name := printf "%s%s" (include (ternary "csi-provisioner.fullname" "csi-provisioner.clusterName" $own) .root) .suffix -}}
{{- $labels := include "csi-provisioner.labels" .root | fromYaml -}}
{{- if .component -}}{{- $_ := set $labels "app.kubernetes.io/component" .component -}}{{- end -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- toYaml $labels | nindent 4 }}
rules:
{{ .rules | trim | indent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- toYaml $labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name }}
subjects:
  {{- include "csi-provisioner.subjects" .root | nindent 2 }}
{{- end -}}
