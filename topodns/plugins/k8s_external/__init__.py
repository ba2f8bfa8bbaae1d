"""The `k8s_external` plugin: names `<service>.<namespace>.<origin>` for clients outside the cluster."""
