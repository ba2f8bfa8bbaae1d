"""CPU and latency of an answer, topodns beside CoreDNS, unbound, BIND and NSD. See ../README.md."""
