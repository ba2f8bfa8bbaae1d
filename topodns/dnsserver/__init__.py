"""The DNS server, from the octets of a query to those of its reply: packet cache, handler, router, plugin chain.

`fast_forward` and `fast_kubernetes` answer plain questions without the chain; `push` has the sessions of clients that
subscribe to names (DNS Push Notifications).
"""
