//! Room kube_api.
