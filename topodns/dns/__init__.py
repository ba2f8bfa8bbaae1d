"""DNS as bytes and values: names, messages, wire, framing.

Pure: no socket, clock, chance, log or metric, and no knowledge of Kubernetes.
"""
