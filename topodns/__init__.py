"""topodns: cluster DNS that knows where the asking pod runs."""

__version__ = "0.1.0"
