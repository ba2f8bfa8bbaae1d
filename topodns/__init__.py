"""topodns: a Kubernetes cluster DNS server that answers by the topology of the client's Node."""

__version__ = "0.1.0"
