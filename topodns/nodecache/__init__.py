"""node-cache's own configuration: its flags, the template of its Corefile, the kube-dns ConfigMap."""
