"""How soon a change of the cluster is in the answers of a node cache: with pushes, and with TTLs alone."""
