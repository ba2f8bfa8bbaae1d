"""The command node-cache: its flags, Corefile template, kube-dns ConfigMap, self-probe and network hooks."""
