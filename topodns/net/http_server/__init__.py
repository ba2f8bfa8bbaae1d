"""A small HTTP/1.1 server for the admin endpoints: GET and HEAD, no request bodies.

They are /health, /ready, /metrics, /explain, /who, /audit and /topology (`app.admin_endpoints`).

Clients of these ports may be hostile, and the same thread serves DNS, so all work is done in steps: in one turn of the
event loop one step of one connection (or a few accepted connections), round robin over all listeners of the process. A
step reads at most `AdminLimits.head` octets, answers at most one request and writes as much as the socket accepts at
once; a connection with a pending request or reply is not read.
"""
