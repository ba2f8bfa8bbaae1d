"""Cluster state from an API server: one reflector for each kind that answers need.

`reflector` loops over list and watch; `lister` and `watcher` do one of each; `list_check` decides whether a list is
plausible; `retry` spaces retries; `rollback_check` detects a restored etcd; `sync_state` has the resourceVersion and
the health of a kind; `state_writer` applies changes to the cluster state, and `removal_hold` delays some of them. The
connection is passed in.
"""
