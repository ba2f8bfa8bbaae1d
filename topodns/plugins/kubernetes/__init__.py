"""The `kubernetes` plugin: names of Services, endpoints and Pods (Kubernetes DNS specification 1.1.0)."""
