"""Upstream servers: queries over UDP, each with its own source port and id, over pipelined TCP, and over TLS."""
