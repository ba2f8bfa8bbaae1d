"""Sockets: DNS over UDP and TCP, HTTP, and connections to upstreams."""
