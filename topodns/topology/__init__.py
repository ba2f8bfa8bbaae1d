"""Topology-aware endpoint selection: the Node of a client, and the endpoints it may get. Pure; no I/O, no DNS."""
