"""Admission of TCP connections: the open ones by client address and network, and the one to evict for a new one.

Only decides; the listener closes. No socket, no clock.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from topodns.net.tcp_deadlines import ConnectionDeadline
from topodns.net.tcp_limits import TcpLimits

_PREFIX_OCTETS: Final = {4: 3, 16: 8}  # by the length of the address: a /24, a /64


class AdmissibleConnection(Protocol):
    @property
    def address(self) -> bytes:
        """The client's address, 4 or 16 octets."""

    @property
    def deadline(self) -> ConnectionDeadline:
        """The connection's deadline: `at` is the time at which the listener closes it."""

    def is_idle(self) -> bool:
        """Whether closing it loses no reply to a whole query; an incomplete one does not count."""


M = TypeVar("M", bound=AdmissibleConnection)

Group = dict[M, None]
"""The connections of one client address, in order of their arrival."""


class AdmissionVerdict(NamedTuple, Generic[M]):
    """Whether a new connection is admitted, and the connection to close for it."""

    admitted: bool
    evicted: M | None = None


def prefix_of(address: bytes) -> bytes:
    """The network whose connections share a limit: a /24 of IPv4 (3 octets), a /64 of IPv6 (8 octets)."""
    return address[: _PREFIX_OCTETS[len(address)]]


class Admission(Generic[M]):
    """The open connections of one listener.

    Those with a DSO session are held: they count for no limit here, and none is evicted, since sessions have limits of
    their own (`dnsserver.push.budget`). Each began as an ordinary connection, within these limits.
    """

    def __init__(self) -> None:
        self._held: dict[M, None] = {}
        self._networks: dict[bytes, dict[bytes, Group[M]]] = {}  # no network and no group is empty
        self._sizes: dict[bytes, int] = {}  # connections of each network
        self._count = 0

    def __len__(self) -> int:
        return self._count + len(self._held)

    def __iter__(self) -> Iterator[M]:
        for network in self._networks.values():
            for group in network.values():
                yield from group
        yield from self._held

    def judge(self, address: bytes, limits: TcpLimits) -> AdmissionVerdict[M]:
        """Whether a new connection from this address is admitted, and which one to evict for it. Changes nothing.

        Within all limits it is admitted and none is evicted. Above a limit, one is evicted, of several the one with the
        nearest deadline; if there is none, the new one is refused:

        - above that of its address, an idle one (`AdmissibleConnection.is_idle`) of the same address;
        - above that of its network, an idle one of the address with the most connections in it, or of the next that has
          an idle one, while not fewer than the new one's address has; else a busy one of the address with the most, if
          that has at least two more;
        - above that of all, likewise by network: see `_of_heaviest_network`.
        """
        prefix = prefix_of(address)
        network = self._networks.get(prefix, {})
        group: Group[M] = network.get(address, {})
        if len(group) >= limits.per_address:
            return _closing(_first_idle([group]))
        size = self._sizes.get(prefix, 0)
        if size >= limits.per_prefix:
            groups = _heaviest_first(network)
            least_used = _first_idle(each for each in groups if len(each) >= len(group))
            return _closing(least_used or (_soonest_first(groups[0])[0] if len(groups[0]) > len(group) + 1 else None))
        if self._count >= limits.connections:
            return _closing(self._of_heaviest_network(size))
        return AdmissionVerdict(admitted=True)

    def add(self, member: M) -> None:
        prefix = prefix_of(member.address)
        self._networks.setdefault(prefix, {}).setdefault(member.address, {})[member] = None
        self._sizes[prefix] = self._sizes.get(prefix, 0) + 1
        self._count += 1

    def hold(self, member: M) -> None:
        """Hold an open connection; no effect on one that is not open here."""
        if member not in self._held and self.remove(member):
            self._held[member] = None

    def release(self, member: M) -> None:
        """Let a held connection count like others again, even above a limit; no effect on one that is not held."""
        if member in self._held:
            del self._held[member]
            self.add(member)

    def remove(self, member: M) -> bool:
        """Remove a connection. Returns whether it was open here."""
        if member in self._held:
            del self._held[member]
            return True
        prefix = prefix_of(member.address) if member.address else b""
        network = self._networks.get(prefix, {})
        group: Group[M] = network.get(member.address, {})
        if member not in group:
            return False
        del group[member]
        if not group:
            del network[member.address]
        self._sizes[prefix] -= 1
        if not network:
            del self._networks[prefix], self._sizes[prefix]
        self._count -= 1
        return True

    def _of_heaviest_network(self, size: int) -> M | None:
        """The connection to evict for a new one of a network with `size` connections; None: refuse the new one.

        An idle one of the heaviest network that has any, if of at least `size`; else a busy one of the heaviest, if of
        at least `size` + 2.
        """
        heaviest, *others = sorted(self._sizes, key=self._sizes.__getitem__, reverse=True)
        for prefix in (heaviest, *others):
            if self._sizes[prefix] < size:
                break
            if (found := _first_idle(_heaviest_first(self._networks[prefix]))) is not None:
                return found
        if self._sizes[heaviest] <= size + 1:
            return None
        return _soonest_first(_heaviest_first(self._networks[heaviest])[0])[0]


def _heaviest_first(network: dict[bytes, Group[M]]) -> list[Group[M]]:
    return sorted(network.values(), key=len, reverse=True)


def _first_idle(groups: Iterable[Group[M]]) -> M | None:
    return next((member for group in groups for member in _soonest_first(group) if member.is_idle()), None)


def _soonest_first(group: Group[M]) -> list[M]:
    return sorted(group, key=lambda member: member.deadline.at)


def _closing(member: M | None) -> AdmissionVerdict[M]:
    """Admit the new connection in place of `member`; refuse it if `member` is None."""
    return AdmissionVerdict(member is not None, member)
