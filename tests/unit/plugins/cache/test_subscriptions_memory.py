"""The memory that the subscriptions of a node cache take, which docs/operate/node-cache.md names."""

import gc
import tracemalloc
from random import Random

from tests.support.dso_upstream import Connecting
from tests.support.virtual_timers import VirtualTimers
from topodns.dns.name import name_wire, parse_name
from topodns.dns.push_messages import PushChange, write_push
from topodns.dns.rrtype import RRClass, RRType
from topodns.plugins.cache.counts import SubscriptionCounts
from topodns.plugins.cache.store import Memory
from topodns.plugins.cache.subscriptions import PushSubscriptions

SUBSCRIPTIONS = 5000
_TAIL = b"\0\1\0\1\0\0"  # type, class, and the two octets of a key that are not part of the subject


class Entries(Memory):
    """A cache without tables, in which all names are used."""

    def __init__(self) -> None:
        pass

    def expire(self, subject: bytes) -> None:
        pass

    def is_used(self, subject: bytes, grace: int) -> bool:
        return True


def test_a_subscription_with_its_pushed_record_takes_at_most_a_kilobyte() -> None:
    timers = VirtualTimers()
    upstream = Connecting(timers)
    push = PushSubscriptions(
        2 * SUBSCRIPTIONS, [upstream], Entries(), lambda facts: None, timers, Random(1), SubscriptionCounts()
    )
    names = [name_wire(parse_name(f"web{number}.default.svc.cluster.local.")) for number in range(SUBSCRIPTIONS)]
    push.served(b"\5first\0" + _TAIL, False)
    (wire,) = upstream.wires
    wire.establish()
    gc.collect()
    tracemalloc.start()
    for number, name in enumerate(names):
        push.served(name + _TAIL, False)
        while wire.sent:
            wire.respond()
        (message,) = write_push([PushChange(name, RRType.A, RRClass.IN, 30, number.to_bytes(4, "big"))])
        wire.say(message)
    gc.collect()
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert push.live == SUBSCRIPTIONS + 1
    assert allocated / SUBSCRIPTIONS < 1000, allocated
