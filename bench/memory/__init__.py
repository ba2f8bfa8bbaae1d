"""How much memory a server and a node cache take, by what they know and hold: `make bench-memory`."""
