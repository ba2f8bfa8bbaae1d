"""The cluster as values: objects, state, topology, where a client is.

Pure: no I/O, clock, chance, log or metric, and no knowledge of DNS.
"""
