"""Cluster state from an API server: one reflector for each kind that answers need.

`reflector` loops over list and watch, and detects a restored etcd; `lister` and `watcher` do one of each;
`list_check` decides whether a list is plausible; `retry` spaces retries; `restorer` requests again what was left out;
`sync_state` has the resourceVersions of a kind and the objects that are skipped, `progress` its health and counters;
`state_writer` applies changes to the cluster state, some of them with a delay, and `programming_latency` measures how
long they took to come; `decode_turns` shares the time of the event loop. The connection is passed in.
"""
