{{/* The command line, as a list. Every value is written out, so that `kubectl get` shows what runs. */}}

{{- define "csi-provisioner.featureGates" -}}
{{- $gates := deepCopy .Values.featureGates -}}
{{- if not .Values.features.topology -}}{{- $_ := set $gates "Topology" false -}}{{- end -}}
{{- /* Not written when on: the program then asks the API server whether it has the type. */ -}}
{{- if not .Values.features.attributesClass -}}{{- $_ := set $gates "VolumeAttributesClass" false -}}{{- end -}}
{{- if .Values.features.crossNamespace -}}{{- $_ := set $gates "CrossNamespaceVolumeDataSource" true -}}{{- end -}}
{{- $pairs := list -}}
{{- range $gate := keys $gates | sortAlpha -}}{{- $pairs = append $pairs (printf "%s=%v" $gate (get $gates $gate)) -}}{{- end -}}
{{- join "," $pairs -}}
{{- end -}}

{{- define "csi-provisioner.arguments" -}}
{{- with .Values -}}
- {{ printf "--csi-address=%s/%s" (.socket.dir | trimSuffix "/") .socket.file | quote }}
- {{ printf "--timeout=%s" .timeout | quote }}
- {{ printf "--retry-interval-start=%s" .retryIntervalStart | quote }}
- {{ printf "--retry-interval-max=%s" .retryIntervalMax | quote }}
- {{ printf "--worker-threads=%d" (int .workerThreads) | quote }}
- {{ printf "--kube-api-qps=%v" .kubeApiQps | quote }}
- {{ printf "--kube-api-burst=%d" (int .kubeApiBurst) | quote }}
- {{ printf "--extra-create-metadata=%t" .extraCreateMetadata | quote }}
{{- if .defaultFstype }}
- {{ printf "--default-fstype=%s" .defaultFstype | quote }}
{{- end }}
- {{ printf "--strict-topology=%t" .strictTopology | quote }}
- {{ printf "--immediate-topology=%t" .immediateTopology | quote }}
{{- if not .features.snapshots }}
- "--snapshot-orphan-sweep-interval=0"
{{- end }}
{{- with include "csi-provisioner.featureGates" $ }}
- {{ printf "--feature-gates=%s" . | quote }}
{{- end }}
{{- if .leaderElection.enabled }}
- "--leader-election=true"
{{- if .leaderElection.namespace }}
- {{ printf "--leader-election-namespace=%s" .leaderElection.namespace | quote }}
{{- end }}
- {{ printf "--leader-election-lease-duration=%s" .leaderElection.leaseDuration | quote }}
- {{ printf "--leader-election-renew-deadline=%s" .leaderElection.renewDeadline | quote }}
- {{ printf "--leader-election-retry-period=%s" .leaderElection.retryPeriod | quote }}
{{- end }}
- {{ printf "--durable-intent=%s" (include "csi-provisioner.durableIntent" $) | quote }}
{{- if and .durableIntent.namespace (ne (include "csi-provisioner.durableIntent" $) "off") }}
- {{ printf "--durable-intent-namespace=%s" .durableIntent.namespace | quote }}
{{- end }}
{{- if .http.enabled }}
- {{ printf "--http-endpoint=:%d" (int .http.port) | quote }}
- {{ printf "--metrics-path=%s" .http.metricsPath | quote }}
{{- end }}
- {{ printf "--logging-format=%s" .logFormat | quote }}
- {{ printf "--v=%d" (int .logLevel) | quote }}
{{- range .extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}
