"""Memory, CPU and latency on clusters of the size that Kubernetes supports at most, topodns beside CoreDNS."""
