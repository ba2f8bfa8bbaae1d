"""State of a Kubernetes cluster: its objects as values, their indexes, and the topology policies of its Services.

Pure: no I/O, clock, randomness, log or metric, and no DNS.
"""
