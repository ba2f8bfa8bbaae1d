"""`make bench-push`: the time from a change of the cluster to the answers of a node cache, with and without pushes."""
