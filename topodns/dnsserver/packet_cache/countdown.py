"""Ready-made answers that age: their TTLs count down, and at some time they must be asked for anew."""

import struct
from collections.abc import Callable
from math import ceil
from typing import Final

from topodns.dns.message import RRType
from topodns.resolve.reply_layout import record_places
from topodns.resolve.rotation import Rotation

_OPT: Final = int(RRType.OPT)  # whose TTL is none (RFC 6891 section 6.1.3)
_PLACE: Final = 144  # octets that Python takes for one place's tuple and numbers
_OBJECTS: Final = 460  # and for an Ageing, its list, the entry, and two strings of octets: see bench/cache_memory.py

_ttl = struct.Struct("!I")


class Ageing:
    """Gives a reply, after its id, as it is now; None from `valid_until` on, or once a TTL would be 0.

    TTLs go down by one where a whole number of seconds is left until `valid_until`, so that should be so where they
    were made. `clock` gives monotonic seconds, of the same clock. The octets are made anew once a second at most.
    `filed`: the answer is listed under facts as well.
    """

    __slots__ = ("_clock", "_first_left", "_left", "_reply", "_rotation", "_tail", "_ttls", "_valid_until", "filed")

    def __init__(
        self, reply: bytes, valid_until: float, clock: Callable[[], float], rotation: Rotation | None, filed: bool
    ) -> None:
        self._reply, self._tail = reply, reply[2:]
        self._ttls = [(place.ttl_at, place.ttl) for place in record_places(reply) if place.rtype != _OPT]
        self._valid_until, self._clock = valid_until, clock
        self._rotation = rotation
        self.filed = filed
        self._first_left = ceil(valid_until - clock())
        self._left = max(1, self._first_left)  # what is offered too late is outlived from the start

    @property
    def octets(self) -> int:
        """About as much memory as it takes."""
        rotated = self._rotation.octets if self._rotation is not None else 0
        return 2 * len(self._reply) + len(self._ttls) * _PLACE + rotated + _OBJECTS

    def __call__(self) -> bytes | None:
        left = ceil(self._valid_until - self._clock())
        if left != self._left and not self._count_down(left):
            return None
        return self._tail if self._rotation is None else self._rotation()

    def _count_down(self, left: int) -> bool:
        """Whether there is anything left."""
        elapsed = self._first_left - left
        if left <= 0 or any(ttl <= elapsed for _, ttl in self._ttls):
            return False
        aged = bytearray(self._reply)
        for at, ttl in self._ttls:
            _ttl.pack_into(aged, at, ttl - elapsed)
        self._left, self._tail = left, bytes(aged[2:])
        if self._rotation is not None:
            self._rotation.dress(bytes(aged))
        return True
