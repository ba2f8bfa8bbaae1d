"""The fast path to `kubernetes`: plain questions are answered as octets, without Query, Resolution and records.

It is for questions that the packet cache does not know: for an address of a Service, or for a name that does not exist.
`eligibility` derives the origins that have it from the attributes of the plugins of their server block; every other
question takes the chain, and so does a question that comes again, which the packet cache then keeps. Both give the same
replies (tests/unit/dnsserver/fast_kubernetes).
"""
