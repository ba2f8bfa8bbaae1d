"""The fast path to `kubernetes`: Answers to plain questions are written as octets, without Query and Resolution.

It is for questions of type A, AAAA and SRV that the packet cache has no reply to. The reply to a question that came
before is handed to the packet cache. One with a node identity is answered here each time, since the packet cache keeps
no reply to it.

`eligibility` derives the origins that have the fast path from the attributes of the plugins of their server block;
every other question takes the chain. Both give the same replies (tests/unit/dnsserver/fast_kubernetes), since both get
them from `plugins.kubernetes.answer`.
"""
