"""Cluster state from an API server: one reflector for each kind that answers need.

`reflector` loops over list and watch; `lister` and `watcher` do one of each; `list_check` decides whether a list is
plausible; `retry` spaces retries; `rollback_check` detects a restored etcd; `sync_state` has the resourceVersions of a
kind, `progress` its health and counters, and `undecodable` the objects that are skipped; `state_writer` applies changes
to the cluster state, `removal_hold` delays some of them, and `programming_latency` measures how long they took to come.
The connection is passed in.
"""
