"""A list of all objects of one kind, compared with what is held: only what differs is work, in steps of few objects.

A cluster has up to 150,000 objects of a kind, and a list of them must not keep a question waiting.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from topodns.cluster.facts import Fact
from topodns.cluster.model import ClusterObject, EndpointSlice, ObjectKey
from topodns.cluster.slice_table import owner_of

T = TypeVar("T")

COMPARED_AT_ONCE: Final = 64  # objects; some 50 us

Difference = tuple[ClusterObject | None, ClusterObject | None]
"""(held, to be held) under one key; never both None."""


class Step(NamedTuple):
    """A little of a list was taken in: the facts that this touched, and how many objects were not as they were held."""

    facts: frozenset[Fact]
    differing: int


IDLE: Final = Step(frozenset(), 0)  # nothing but comparing


def outdated(held: ClusterObject | None, version: int) -> bool:
    """Whether news with this version of an object are older than what is held of it (KEP-5504). 0 has no order."""
    return held is not None and 0 < version < held.version


def differs(held: ClusterObject | None, listed: ClusterObject) -> bool:
    """Whether a list says something else of an object than is held.

    Equal with a lower version differs too: that is a restored etcd, whose next news must not count as old.
    """
    return held is not listed and (held is None or held != listed or outdated(held, listed.version))


class Comparison:
    """What a list changes. `groups` is complete once `steps` has run to its end.

    Objects under the keys of `news` are left alone: something newer than the list is known of them.
    """

    groups: deque[list[Difference]]  # whoever takes one out gives its memory back

    def __init__(
        self,
        held: Mapping[tuple[str, str], ClusterObject],
        listed: Sequence[ClusterObject],
        news: Set[ObjectKey] = frozenset(),
    ) -> None:
        self.groups = deque()
        self._held = held
        self._listed = listed
        self._news = news
        self._by_owner: dict[ObjectKey, list[Difference]] = {}

    def steps(self) -> Iterator[None]:
        """Compare a few objects, then yield, until all are compared."""
        wanted: dict[ObjectKey, ClusterObject] = {}
        for some in _batches(reversed(self._listed)):  # so that they are taken out in their order
            for listed in some:
                wanted.setdefault(listed.key, listed)
            yield
        for gone in _batches(list(self._held.values())):
            for held in gone:
                if held.key not in wanted and held.key not in self._news:
                    self._add(held, None)
            yield
        while wanted:  # it is emptied on the way: to let go of all its keys at once would take 15 ms
            for _ in range(min(COMPARED_AT_ONCE, len(wanted))):
                key, listed = wanted.popitem()
                if differs(self._held.get(key), listed) and key not in self._news:
                    self._add(self._held.get(key), listed)
            yield

    def _add(self, held: ClusterObject | None, listed: ClusterObject | None) -> None:
        """All slices of one Service make one group: nobody is to see a part of them changed."""
        one = listed if listed is not None else held
        if not isinstance(one, EndpointSlice):
            self.groups.append([(held, listed)])
            return
        owner = owner_of(one).key
        group = self._by_owner.get(owner)
        if group is None:
            group = self._by_owner[owner] = []
            self.groups.append(group)
        group.append((held, listed))


def _batches(values: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(values)
    while batch := list(islice(remaining, COMPARED_AT_ONCE)):
        yield batch
