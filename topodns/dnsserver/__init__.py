"""The DNS server, from the octets of a query to those of its reply: packet cache, handler, router, plugin chain."""
