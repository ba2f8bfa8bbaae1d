"""Asking other servers. Waits only by outcomes and timers that are given; knows upstreams by their contract alone.

`step` takes questions, one `flight` carries all that are equal, `pool` and `health` choose whom it asks, `outgoing`
and `cleaning` are what leaves and what comes in.
"""

from topodns.resolve.forward.answer import Answer
from topodns.resolve.forward.counts import ForwardCounts, UpstreamCounts
from topodns.resolve.forward.flight import DEADLINE, Flight
from topodns.resolve.forward.limits import InFlight
from topodns.resolve.forward.outgoing import Options, Outgoing
from topodns.resolve.forward.step import Forwarding

__all__ = [
    "DEADLINE",
    "Answer",
    "Flight",
    "ForwardCounts",
    "Forwarding",
    "InFlight",
    "Options",
    "Outgoing",
    "UpstreamCounts",
]
