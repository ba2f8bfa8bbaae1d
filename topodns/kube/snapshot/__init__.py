"""Snapshot of a cluster's state in a file, for a start while the API server is away.

`format` has the octets of the file; `writer` writes it while the state is live; `restorer` reads it into the state, and
drops it if it is of another cluster.
"""
