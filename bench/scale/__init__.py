"""Memory, CPU and latency on the largest clusters there are, topodns beside CoreDNS. See ../README.md."""
