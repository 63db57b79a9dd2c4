{{/* What the schema cannot say: values that fit alone, but not together. Each line says what to do. */}}

{{- define "csi-provisioner.checks" -}}
{{- if not .Values.image.repository -}}
{{- fail "image.repository is empty: set it to the image of csi-provisioner in your registry, such as registry.example.com/storage/csi-provisioner" -}}
{{- end -}}
{{- $drivers := len .Values.driver.containers -}}
{{- range .Values.driver.initContainers -}}
{{- if eq (toString .restartPolicy) "Always" -}}{{- $drivers = add1 $drivers -}}{{- end -}}
{{- end -}}
{{- if and (not $drivers) (not .Values.socket.hostPath) -}}
{{- fail "driver.containers is empty: give the container of your CSI driver, or socket.hostPath if the driver runs in another pod of the node" -}}
{{- end -}}
{{- if and (not .Values.leaderElection.enabled) (gt (int .Values.replicaCount) 1) -}}
{{- fail (printf "replicaCount is %d without leaderElection.enabled: all replicas would work at once; set replicaCount to 1" (int .Values.replicaCount)) -}}
{{- end -}}
{{- $features := dict "Topology" "topology" "VolumeAttributesClass" "attributesClass" "CrossNamespaceVolumeDataSource" "crossNamespace" -}}
{{- range $gate, $feature := $features -}}
{{- if hasKey $.Values.featureGates $gate -}}
{{- fail (printf "featureGates.%s: set features.%s instead, which also grants the rights" $gate $feature) -}}
{{- end -}}
{{- end -}}
{{- with .Values.securityContext -}}
{{- if and .runAsNonRoot (eq (toString .runAsUser) "0") -}}
{{- fail "securityContext.runAsUser is 0 while securityContext.runAsNonRoot is true: the container would never start; set runAsNonRoot to false" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.http.service.enabled (not .Values.http.enabled) -}}
{{- fail "http.service.enabled needs http.enabled" -}}
{{- end -}}
{{- if and .Values.secretNamespaces (not .Values.features.secrets) -}}
{{- fail "secretNamespaces has no effect without features.secrets: set features.secrets to true, or take secretNamespaces out" -}}
{{- end -}}
{{- end -}}
