"""The `push` directive: DNS Push Notifications (RFC 8765) about the names of the block's `kubernetes`.

Here are its settings, counters and metrics; `dnsserver.push` has the sessions.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from topodns.corefile.arguments import fold_options, no_args, once_each, only_arg, whole
from topodns.corefile.parser import Directive
from topodns.memory.budget import FairShares
from topodns.metrics.registry import Published, Reading
from topodns.plugins.compatibility import OURS, Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin
from topodns.plugins.setup import BlockSetup, MetricsSource
from topodns.query.session import PushedZones, PushLimits

SESSIONS_OF_ADDRESS: Final = 16
"""DSO sessions of one client address: a node cache has one or two, and Pods behind masquerading share them."""


class PushRefusal(Enum):
    """Reasons for a response that is not NOERROR; the value is the label of metrics."""

    MALFORMED = "malformed"
    UNKNOWN = "unknown"  # a DSO type that this server does not implement
    SESSIONS = "sessions"
    SUBSCRIPTIONS = "subscriptions"
    MEMORY = "memory"
    SHARE = "share"  # of one address in the memory
    NAME = "name"  # not below an origin of `kubernetes` with `push`, or answered by an upstream
    TYPE = "type"  # ANY, or what changes without a notice, such as the SOA
    CLIENT = "client"  # `acl` or `unknown_client refuse`
    NOT_READY = "not_ready"


class SessionEnd(Enum):
    """Reasons for the end of a session; the value is the label of metrics."""

    CLOSED = "closed"  # by the client, its deadline, or another limit of the connection
    ERROR = "error"  # the client has broken the protocol
    SLOW = "slow"  # the client has not read what was pushed
    SERVER = "server"  # the server stops, or its Corefile has changed
    EVICTED = "evicted"  # for a session of an address with fewer


@dataclass(slots=True)
class PushCounts:
    """Gauges and counters of the process."""

    sessions: int = 0
    subscriptions: int = 0
    memory: FairShares = field(default_factory=FairShares, compare=False)  # of subscriptions and answers, by address
    pushes: int = 0  # PUSH messages
    refused: Counter[PushRefusal] = field(default_factory=Counter)
    ended: Counter[SessionEnd] = field(default_factory=Counter)

    @property
    def octets(self) -> int:
        """The memory of all addresses."""
        return self.memory.octets


_MOST: Final = 1_000_000
_MOST_MEMORY: Final = 4096  # MiB


def parse_push(directive: Directive, _: Context) -> PushLimits:
    """`push { sessions N; subscriptions N; memory MIB }`. Raises ConfigError."""
    no_args(directive)
    once_each(directive)
    return fold_options(directive, PushLimits(), _OPTIONS)


def _number(option: Directive, most: int) -> int:
    return whole(option, only_arg(option, f"a number from 1 to {most}"), 1, most)


_OPTIONS: Final[Mapping[str, Callable[[Directive, PushLimits], PushLimits]]] = {
    "sessions": lambda option, limits: replace(limits, sessions=_number(option, _MOST)),
    "subscriptions": lambda option, limits: replace(limits, subscriptions=_number(option, _MOST)),
    "memory": lambda option, limits: replace(limits, memory=_number(option, _MOST_MEMORY) << 20),
}


def _setup(limits: PushLimits, block: BlockSetup) -> None:
    if block.cluster is not None:
        block.provide(PushedZones(block.cluster.kubernetes.origins, limits))


def _readings(source: MetricsSource) -> Iterator[Published]:
    counts = source.shared.get(PushCounts)
    yield Reading("topodns_push_sessions", "DSO sessions of clients.", "gauge", (), lambda: [((), counts.sessions)])
    yield Reading(
        "topodns_push_subscriptions",
        "Subscriptions of these sessions.",
        "gauge",
        (),
        lambda: [((), counts.subscriptions)],
    )
    yield Reading(
        "topodns_push_bytes",
        "Memory of subscriptions, as it counts for the limit.",
        "gauge",
        (),
        lambda: [((), counts.octets)],
    )
    yield Reading("topodns_push_messages", "PUSH messages sent.", "counter", (), lambda: [((), counts.pushes)])
    yield Reading(
        "topodns_push_refused",
        "Requests of DSO sessions that were refused, and why.",
        "counter",
        ("reason",),
        lambda: [((reason.value,), counts.refused[reason]) for reason in PushRefusal],
    )
    yield Reading(
        "topodns_push_sessions_ended",
        "DSO sessions that have ended, and why.",
        "counter",
        ("reason",),
        lambda: [((reason.value,), counts.ended[reason]) for reason in SessionEnd],
    )


PLUGIN: Final = Plugin(
    name="push",
    coredns=differs(Effect.BOUNDS, OURS),
    parse=parse_push,
    setup=_setup,
    requires=("kubernetes",),
    fast_path=FastPath.ABSENT,
    metrics=_readings,
)
