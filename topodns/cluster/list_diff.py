"""Comparison of a full list of one kind with the held objects, in steps of few objects; only differences are applied.

A cluster has up to 150,000 objects of a kind, and a list of them must not delay queries.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from topodns.cluster.model import ClusterObject, EndpointSlice, ObjectKey
from topodns.cluster.slices import owner_of
from topodns.dependency import Fact

T = TypeVar("T")

COMPARED_AT_ONCE: Final = 64  # objects per step; some 50 us
SLICES_AT_ONCE: Final = 100  # of one Service that are applied at once
ENDPOINTS_AT_ONCE: Final = 10_000  # and in these; to apply so many takes some 60 ms

Difference = tuple[ClusterObject | None, ClusterObject | None]
"""(held object, new object) of one key; None: absent; never both None."""


class DiffStep(NamedTuple):
    """One applied step of a list: the dependencies that it touched, and the number of objects that differed."""

    facts: frozenset[Fact]
    differing: int


IDLE: Final = DiffStep(frozenset(), 0)  # a step that only compared


def outdated(held: ClusterObject | None, version: int) -> bool:
    """Whether this version is older than that of the held object (KEP-5504). Version 0 has no order: False."""
    return held is not None and 0 < version < held.version


def differs(held: ClusterObject | None, listed: ClusterObject) -> bool:
    """Whether a listed object differs from the held one.

    An equal object with a lower version differs too: etcd was restored, and its next events must not count as old.
    """
    return held is not listed and (held is None or held != listed or outdated(held, listed.version))


class ListDiff:
    """The differences between a list and the held objects: found by `steps`, then given out by `applied_at_once`.

    The keys of `newer` are not compared: the held object, or its absence, is newer than the list.
    """

    def __init__(
        self,
        held: Mapping[tuple[str, str], ClusterObject],
        listed: Sequence[ClusterObject],
        newer: Set[ObjectKey] = frozenset(),
    ) -> None:
        # All differing slices of a Service, or one other object; a deque, to free the memory of each that is applied.
        self._groups: deque[list[Difference]] = deque()
        self._held = held
        self._listed = listed
        self._newer = newer
        self._by_owner: dict[ObjectKey, list[Difference]] = {}

    def steps(self) -> Iterator[None]:
        """Compare all objects, with a yield after every 64.

        Of listed objects with the same key the last counts.
        """
        wanted: dict[ObjectKey, ClusterObject] = {}
        for some in batched(reversed(self._listed)):  # reversed, because popitem below removes the last first
            for listed in some:
                wanted.setdefault(listed.key, listed)
            yield
        for gone in batched(list(self._held.values())):
            for held in gone:
                if held.key not in wanted and held.key not in self._newer:
                    self._add(held, None)
            yield
        while wanted:  # emptied step by step: to free all its keys at once would take 15 ms
            for _ in range(min(COMPARED_AT_ONCE, len(wanted))):
                key, listed = wanted.popitem()
                if differs(self._held.get(key), listed) and key not in self._newer:
                    self._add(self._held.get(key), listed)
            yield
        self._by_owner.clear()  # so that each group is freed once it is applied

    def applied_at_once(self) -> Iterator[list[Difference]]:
        """The differences of one object, or of all slices of a Service, so that no answer mixes old and new ones.

        A Service with more than 100 differing slices, or 10,000 endpoints in them, is applied in parts, removals last:
        a user can make any number, and the queries of others must not wait for them.
        """
        while self._groups:
            group = self._groups.popleft()
            yield from [group] if len(group) == 1 else _parts(group)

    def _add(self, held: ClusterObject | None, listed: ClusterObject | None) -> None:
        """Add a difference; all slices of one Service form one group, so that no answer mixes old and new slices."""
        one = one_of((held, listed))
        if not isinstance(one, EndpointSlice):
            self._groups.append([(held, listed)])
            return
        owner = owner_of(one).key
        group = self._by_owner.get(owner)
        if group is None:
            group = self._by_owner[owner] = []
            self._groups.append(group)
        group.append((held, listed))


def one_of(difference: Difference) -> ClusterObject:
    """The new object, or the held one where there is no new one: both have the key of the difference."""
    held, listed = difference
    one = listed if listed is not None else held
    assert one is not None
    return one


def _parts(group: list[Difference]) -> Iterator[list[Difference]]:
    part: list[Difference] = []
    endpoints = 0
    for held, listed in sorted(group, key=lambda difference: difference[1] is None):
        part.append((held, listed))
        endpoints += max(len(one.endpoints) for one in (held, listed) if isinstance(one, EndpointSlice))
        if len(part) == SLICES_AT_ONCE or endpoints >= ENDPOINTS_AT_ONCE:
            yield part
            part, endpoints = [], 0
    if part:
        yield part


def batched(values: Iterable[T]) -> Iterator[list[T]]:
    """The values, 64 at a time."""
    remaining = iter(values)
    while batch := list(islice(remaining, COMPARED_AT_ONCE)):
        yield batch
