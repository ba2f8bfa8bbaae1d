"""Audits of clusters, for /audit of a running server and for the command `topodns audit`."""
