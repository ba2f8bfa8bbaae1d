"""The fast path to `kubernetes`: plain questions are answered as octets, without Query, Resolution and records.

It is for questions that the packet cache has no reply to: about addresses of Services and Pods, SRV records of headless
Services, and names that do not exist. A question that comes again takes the chain, whose reply the packet cache keeps;
but one with a node identity is answered here each time, since the packet cache keeps no reply to it.

`eligibility` derives the origins that have the fast path from the attributes of the plugins of their server block;
every other question takes the chain. Both give the same replies (tests/unit/dnsserver/fast_kubernetes).
"""
