"""The `loadbalance` plugin: the order of addresses in an answer."""
