"""The EndpointSlices of each Service and ServiceImport, and which of them count.

Slices made from v1 Endpoints (`mirrored`) count only if their Service has no other slice: the control plane mirrors
Endpoints into slices, and where both exist the real slice has more information.

A user of one namespace can make any number of slices, so an addition or removal costs the same among many.

Which Endpoints become slices: `cluster.decode.slices`.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final, NamedTuple

from topodns.cluster.model import EndpointSlice, ObjectKey

MOST: Final = 1000  # slices of a Service that count, by name; with the default of 100 endpoints a slice, 100,000
HELD: Final = MOST + 100  # slices of a Service that are held; those beyond MOST count once others are deleted
MOST_MIRRORED: Final = 100  # slices; the control plane makes one of each subset and family, with up to 1,000 addresses
MOST_MIRRORED_ENDPOINTS: Final = 20_000  # in these; all of them are looked at where a slice that is not mirrored comes

_name: Final = attrgetter("name")


class SliceOwner(NamedTuple):
    """The Service or, if `imported`, the ServiceImport of a slice: the two may have the same name."""

    key: ObjectKey
    imported: bool = False


def owner_of(one: EndpointSlice) -> SliceOwner:
    """The Service or ServiceImport of a slice; its name is "" if the slice has none."""
    return SliceOwner(ObjectKey(one.namespace, one.service_name), one.imported)


def has_ready(one: EndpointSlice) -> bool:
    """Whether the slice has a ready endpoint."""
    return any(endpoint.ready for endpoint in one.endpoints) or any(alias.ready for alias in one.aliases)


class OwnedSlices:
    """The slices by owner. Those of no Service are left out."""

    def __init__(self) -> None:
        self._real: dict[SliceOwner, list[EndpointSlice]] = {}  # ordered by name
        self._mirrored: dict[SliceOwner, list[EndpointSlice]] = {}  # ordered by name
        self._unready: Counter[tuple[SliceOwner, bool]] = Counter()  # slices, by owner and `mirrored`; no zeros

    def counted(self, owner: SliceOwner) -> tuple[EndpointSlice, ...]:
        """The slices that count for a Service or ServiceImport: the first 1,000 by name, in this order."""
        return tuple(self._real.get(owner, ())[:MOST]) or tuple(self.mirrored(owner))

    def mirrored(self, owner: SliceOwner) -> Sequence[EndpointSlice]:
        """The mirrored slices that count; none where there is another slice.

        They are the first 100 by name, or as many of these as have 20,000 endpoints.
        """
        if owner in self._real:
            return ()
        first = self._mirrored.get(owner, ())[:MOST_MIRRORED]
        sums = accumulate(len(one.endpoints) for one in first)
        return [one for one, endpoints in zip(first, sums, strict=True) if endpoints <= MOST_MIRRORED_ENDPOINTS]

    def counts(self, one: EndpointSlice) -> bool:
        """Whether a held slice counts: false of mirrored ones beside others, or beyond the limits."""
        return not one.mirrored or any(each is one for each in self.mirrored(owner_of(one)))

    def place(self, one: EndpointSlice) -> int:
        """The place of a slice among those of its Service, by name, whether it is one of them or not; 0 if mirrored."""
        return bisect_left(self._real.get(owner_of(one), ()), one.name, key=_name) if not one.mirrored else 0

    def surplus(self, one: EndpointSlice) -> EndpointSlice | None:
        """The first of the slices of the same Service that is not held; None if there is none."""
        slices: Sequence[EndpointSlice] = self._real.get(owner_of(one), ())
        return slices[HELD] if len(slices) > HELD else None

    def ready(self, owner: SliceOwner) -> int:
        """The number of slices with a ready endpoint; of mirrored ones, only where there is no other slice."""
        mirrored = owner not in self._real
        slices = (self._mirrored if mirrored else self._real).get(owner, ())
        return len(slices) - self._unready.get((owner, mirrored), 0)

    def add(self, one: EndpointSlice) -> None:
        """Add a slice; one of this name was not there, or has been removed."""
        owner = owner_of(one)
        if not one.service_name:
            return
        slices = self._of_sort(one).setdefault(owner, [])
        slices.insert(bisect_left(slices, one.name, key=_name), one)
        if not has_ready(one):
            self._unready[owner, one.mirrored] += 1

    def remove(self, one: EndpointSlice) -> None:
        """Remove a slice that was added."""
        owner = owner_of(one)
        if not one.service_name:
            return
        of_sort = self._of_sort(one)
        slices = of_sort[owner]
        del slices[bisect_left(slices, one.name, key=_name)]
        if not slices:
            del of_sort[owner]
        if not has_ready(one):
            self._unready[owner, one.mirrored] -= 1
            if not self._unready[owner, one.mirrored]:
                del self._unready[owner, one.mirrored]

    def _of_sort(self, one: EndpointSlice) -> dict[SliceOwner, list[EndpointSlice]]:
        return self._mirrored if one.mirrored else self._real
