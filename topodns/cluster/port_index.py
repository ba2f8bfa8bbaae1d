"""The ports of a Service's slices, and the set of slices with each port. In most Services all slices have the same."""

from collections.abc import Sequence
from typing import Final

from topodns.cluster.model import EndpointPort, EndpointSlice

MAX_PORTS: Final = 1000  # distinct ports served of one Service's endpoints
EVERYWHERE: Final = 0  # the number of the set of all slices

_NO_PORTS: Final = (EndpointPort("", "", None),)
"""The ports of a slice that has none: its endpoints have addresses, and count in weights of SRV, as in CoreDNS."""


class PortIndex:
    """The first 1,000 distinct ports of the slices of one Service, in slice order.

    A slice without ports counts as one with a port without name, protocol and number.

    The owners of Pods choose names and numbers of ports: if a Service's `targetPort` is a name, each Pod that gives the
    name another number gets a slice of its own, with up to 100 ports of its own. So no step here may cost slices times
    ports, let alone its square. Ports with the same set of slices share the number of that set.
    """

    ports: tuple[EndpointPort, ...]

    def __init__(self, slices: Sequence[EndpointSlice]) -> None:
        self._slices = slices
        first = slices[0].ports if slices else ()
        if len(first) <= MAX_PORTS and all([one.ports == first for one in slices]):  # as in most Services
            self._set_of = dict.fromkeys(first or (_NO_PORTS if slices else ()), EVERYWHERE)
            self.ports = tuple(self._set_of)
            self._sets: tuple[tuple[int, ...], ...] = ()
            return
        having = _slices_by_port(slices)
        self.ports = tuple(having)
        numbers = {tuple(range(len(slices))): EVERYWHERE}
        self._set_of = {port: numbers.setdefault(tuple(members), len(numbers)) for port, members in having.items()}
        self._sets = tuple(numbers)

    def set_of(self, port: EndpointPort) -> int | None:
        """The number of the set of slices with this port; None if it is not among `ports`."""
        return self._set_of.get(port)

    def places(self, number: int) -> tuple[int, ...]:
        """The positions of the slices of this set, which is not EVERYWHERE, among all slices."""
        return self._sets[number]


def _slices_by_port(slices: Sequence[EndpointSlice]) -> dict[EndpointPort, list[int]]:
    """The positions of the slices with each of the first MAX_PORTS distinct ports, both in slice order."""
    having: dict[EndpointPort, list[int]] = {}
    for at, one in enumerate(slices):
        for port in one.ports or _NO_PORTS:
            members = having.get(port)
            if members is None:
                if len(having) < MAX_PORTS:
                    having[port] = [at]
            elif members[-1] != at:  # a slice may have a port twice
                members.append(at)
    return having
