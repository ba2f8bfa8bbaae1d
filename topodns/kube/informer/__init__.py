"""Objects of an API server in a store: one reflector for each kind. `store` is the contract of stores.

`resources` has what is known of a kind: its paths, its health and counters, and the log lines about it. `reflector`
loops over list and watch, and detects a restored etcd; `lister` and `watcher` do one of each; `retry` spaces retries;
`sync_state` has the resourceVersions of a kind and the objects that are skipped; `decode_turns` shares the time of the
event loop. The connection is passed in.

For the state of a cluster `informer` runs the reflectors of all kinds that answers need, and requests again what was
left out; `state_writer` is its store, which applies some changes with a delay, and measures how long they took to come.
"""
