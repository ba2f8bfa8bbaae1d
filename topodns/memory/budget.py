"""Memory that several share: caches (`Budget`), clients (`FairShares`), all parts of a process; its limit, by cgroup.

A table may use the octets of a `Budget` that another one does not need. It compares its size with a limit of its own,
and asks for another portion only at that limit, so sharing adds no cost to an insertion.
"""

from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Final, Protocol
from weakref import WeakSet

_PORTIONS: Final = 128  # of a budget; at least four per table


class Holder(Protocol):
    """A table with a share of a budget.

    `limit`, in octets, starts at 0, and the budget sets it; the table keeps to it. `octets`: in use now.
    """

    limit: int
    octets: int

    def lower(self, octets: int) -> None:
        """Reduce the limit by so many octets, and evict at least whatever no longer fits."""


class Budget:
    """At most `octets` over all tables. A table that has been garbage-collected holds none."""

    def __init__(self, octets: int) -> None:
        self.octets = octets
        self._holders: WeakSet[Holder] = WeakSet()

    def __repr__(self) -> str:
        return f"<Budget {self.granted} of {self.octets} octets, {len(self._holders)} tables>"

    @property
    def granted(self) -> int:
        """The sum of the limits of all tables."""
        return sum(holder.limit for holder in self._holders)

    def add(self, holder: Holder) -> None:
        """Add a table, whose limit is 0."""
        self._holders.add(holder)

    def grant(self, table: Holder) -> bool:
        """Raise the limit of `table` by a portion, taken if necessary from one with unused octets or the largest limit.

        False, with nothing changed, if no other table has two portions unused or a limit larger by two portions; then
        `table` must evict.
        """
        portion = max(1, self.octets // max(_PORTIONS, 4 * len(self._holders)))
        if self.granted + portion > self.octets:
            donor = self._donor(table, portion)
            if donor is None:
                return False
            donor.lower(portion)
        table.limit += portion
        return True

    def _donor(self, table: Holder, portion: int) -> Holder | None:
        most_unused = max(self._holders, key=_unused)
        # It keeps one portion for its own next insertions.
        if most_unused is not table and _unused(most_unused) >= 2 * portion:
            return most_unused
        largest = max(self._holders, key=attrgetter("limit"))
        # A smaller difference would let two tables take the portion from each other for ever.
        return largest if largest.limit >= table.limit + 2 * portion else None


def _unused(holder: Holder) -> int:
    return holder.limit - holder.octets


class FairShares:
    """The octets that holders have of one limit. None gets so many that nothing is left to others.

    The rule: a holder may have more while `octets of the holder <= limit - octets of all`, which must be more than 0.
    So one alone can fill half of the limit, and beside others half of what these leave.
    """

    def __init__(self) -> None:
        self.octets = 0  # of all
        self._held: dict[bytes, int] = {}

    def of(self, holder: bytes) -> int:
        """The octets that this holder has."""
        return self._held.get(holder, 0)

    def add(self, holder: bytes, octets: int) -> None:
        """Add octets to those of a holder, whatever the limit is; a negative number subtracts."""
        self.octets += octets
        held = self.of(holder) + octets
        if held:
            self._held[holder] = held
        else:
            self._held.pop(holder, None)

    def is_full(self, limit: int) -> bool:
        """Whether the limit is used up, so that no holder may have more."""
        return self.octets >= limit

    def may_grow(self, holder: bytes, limit: int) -> bool:
        """Whether this holder may have more, where the limit is not used up."""
        return self.of(holder) <= limit - self.octets


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """Memory limits in octets: all `cache` directives together (answers, denials), and the packet caches.

    `unread`: replies that TCP clients have not read yet, per listener, kernel buffers included; `unread_each`: per
    connection, without kernel buffers.
    """

    answers: int
    denials: int  # apart from answers, because a flood of random names causes denials
    ready_made: int  # packet caches of all sockets together
    unread: int = 16 << 20
    unread_each: int = 256 << 10


SERVER: Final = MemoryLimits(24 << 20, 8 << 20, 32 << 20)
"""The limits of a server: large, because it may serve a whole cluster."""

_NODE_UNREAD: Final = 1 << 20  # octets; Pods are near and read at once
_NODE_UNREAD_EACH: Final = 64 << 10  # octets: one DNS message of maximum length


def node_limits(octets: int) -> MemoryLimits:
    """The limits of a node cache that may keep so many octets of answers (`-cache-octets`).

    Half is for answers, a quarter each for denials and for packet caches.
    """
    quarter = octets // 4
    return MemoryLimits(octets - 2 * quarter, quarter, quarter, _NODE_UNREAD, _NODE_UNREAD_EACH)


DEFAULT_LIMIT: Final = 512 << 20  # octets, of a process without a limit; the chart's
_SHARE: Final = 0.6  # of the limit, that a server may take at most
_ITSELF: Final = 130_000_000  # octets: the server (56 MB), its caches under load, lists that are read, and a margin
_WORKER: Final = 70_000_000  # octets of each further process of `multisocket`
_LEAST: Final = 8  # one part of so many of the limit, where the rows above leave less


def cluster_octets(limit: int | None, processes: int) -> int:
    """The octets that the objects of all clusters may take in each process (`cluster.namespace_budget`).

    `limit`: octets of memory of all processes together; None: there is no limit.
    """
    whole = DEFAULT_LIMIT if limit is None else limit
    left = int(whole * _SHARE) - _ITSELF - _WORKER * (processes - 1)
    return max(left, whole // _LEAST) // processes


_MOUNT: Final = "/sys/fs/cgroup"
_UNLIMITED: Final = 1 << 60  # octets; version 1 has 2**63 - 4096 for none


def memory_limit(own: str = "/proc/self/cgroup", mount: str = _MOUNT) -> int | None:
    """The least memory limit of the cgroup of this process and those above it, in octets; None: there is none.

    In a container the path of the cgroup may be the host's, which is not mounted there: its own is the root then.
    """
    limits = []
    with suppress(OSError):
        for line in Path(own).read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                limits += _limits(Path(mount), path, "memory.max")
            elif "memory" in controllers.split(","):
                limits += _limits(Path(mount) / "memory", path, "memory.limit_in_bytes")
    return min(limits, default=None)


def _limits(root: Path, path: str, name: str) -> list[int]:
    found = []
    at = root / path.lstrip("/")
    for directory in (at, *at.parents):
        if directory != root and root not in directory.parents:
            break
        with suppress(OSError, ValueError):  # ValueError: "max"
            limit = int((directory / name).read_text(encoding="ascii"))
            if limit < _UNLIMITED:
                found.append(limit)
    return found
