"""Objects of an API server in a store: one reflector for each kind. `store` is the contract of stores.

`reflector` loops over list and watch, and detects a restored etcd; `lister` and `watcher` do one of each;
`list_check` decides whether a list is plausible; `retry` spaces retries; `restorer` requests again what was left out;
`sync_state` has the resourceVersions of a kind and the objects that are skipped, `progress` its health and counters;
`reports` logs; `decode_turns` shares the time of the event loop. The connection is passed in.

For the state of a cluster `informer` runs the reflectors of all kinds that answers need; `state_writer` is its store,
which applies some changes with a delay, and `programming_latency` measures how long they took to come.
"""
