"""Packet cache entries that expire: their TTLs count down until the answer must be resolved again."""

import struct
from collections.abc import Callable
from math import ceil
from typing import Final

from topodns.dns.rrtype import RRType
from topodns.dnsserver.packet_cache.rotation import Rotation, record_places

_PLACE: Final = 144  # octets of memory for one place's tuple and numbers
_OBJECTS: Final = 472  # and for an Ageing, its list, the entry, and two bytes objects: see bench/cache_memory.py

_ttl = struct.Struct("!I")


class Ageing:
    """Gives a reply, without its id, with its current TTLs; None from `valid_until` on, or once a TTL would be 0.

    TTLs decrease by one whenever a whole number of seconds is left until `valid_until`; those in `reply` are the TTLs
    when this object is made. `clock`: monotonic seconds, the clock of `valid_until`. The octets are rebuilt once a
    second at most. `indexed`: the entry is also indexed by its dependencies.
    """

    __slots__ = ("_clock", "_first_left", "_left", "_reply", "_rotation", "_tail", "_ttls", "_valid_until", "indexed")

    def __init__(
        self, reply: bytes, valid_until: float, clock: Callable[[], float], rotation: Rotation | None, indexed: bool
    ) -> None:
        self._reply, self._tail = reply, reply[2:]
        # The TTL field of OPT is no TTL (RFC 6891 section 6.1.3).
        self._ttls = [(place.ttl_at, place.ttl) for place in record_places(reply) if place.rtype != RRType.OPT]
        self._valid_until, self._clock = valid_until, clock
        self._rotation = rotation
        self.indexed = indexed
        self._first_left = ceil(valid_until - clock())
        self._left = max(1, self._first_left)  # a reply offered too late is expired from the start

    @property
    def octets(self) -> int:
        """Approximate memory use."""
        rotated = self._rotation.octets if self._rotation is not None else 0
        return 2 * len(self._reply) + len(self._ttls) * _PLACE + rotated + _OBJECTS

    def __call__(self) -> bytes | None:
        left = ceil(self._valid_until - self._clock())
        if left != self._left and not self._count_down(left):
            return None
        return self._tail if self._rotation is None else self._rotation()

    def _count_down(self, left: int) -> bool:
        """Set the TTLs for `left` seconds before the expiry; False if the reply has expired."""
        elapsed = self._first_left - left
        if left <= 0 or any(ttl <= elapsed for _, ttl in self._ttls):
            return False
        aged = bytearray(self._reply)
        for at, ttl in self._ttls:
            _ttl.pack_into(aged, at, ttl - elapsed)
        self._left, self._tail = left, bytes(aged[2:])
        if self._rotation is not None:
            self._rotation.set_reply(bytes(aged))
        return True
