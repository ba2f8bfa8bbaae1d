"""DNS names, messages, wire format, TCP framing and zone-file text, as values and bytes.

Pure: no socket, clock, randomness, log or metric, and no Kubernetes.
"""
