"""Parses plain questions for the fast path: A or AAAA, class IN, in lower case, EDNS without options or none.

Nearly all questions of a cluster differ only in their first label; the rest of the name, the type and the OPT record
(the tail of the message) repeat. So a tail is parsed once, and found by its octets from then on.
"""

from typing import Final

from topodns.dns.message import Flag
from topodns.dns.name import MAX_LABEL, MAX_WIRE
from topodns.dns.rrtype import ADDRESS_TYPES, RRClass, RRType
from topodns.dns.wire_format import (
    DNSSEC_OK,
    HEADER_SIZE,
    MAX_MESSAGE,
    MIN_UDP_PAYLOAD,
    QUESTION_TAIL_SIZE,
    pack_header_without_id,
    pack_question_tail,
    pack_root_record_head,
)
from topodns.dnsserver.fast_forward.eligibility import FastRoute, FastRoutes
from topodns.query.counters import Cell

_FLAGS: Final = [rd | ad | cd for rd in (0, Flag.RD) for ad in (0, Flag.AD) for cd in (0, Flag.CD)]
_MAX_KNOWN: Final = 512  # tails kept, of some 500 octets each


HEADS: Final = {pack_header_without_id(flags, 1, 0, 0, opt): (flags, opt) for flags in _FLAGS for opt in (0, 1)}
"""The rest of a plain question's header after its id -> its flags, and the number of OPT records that follow."""

# Address records: all of one size, without names in them. Other types are too rare to be worth it.
_TYPES: Final = {pack_question_tail(rtype, RRClass.IN): rtype for rtype in ADDRESS_TYPES}
OPT_BEGIN: Final = b"\0\0\x29"
# An OPT record after its payload size: no extended rcode, version 0, no options -> the DO bit.
OPT_ENDS: Final = {b"\0\0\0\0\0\0": 0, b"\0\0\x80\0\0\0": DNSSEC_OK}


class Tail:
    """A parsed tail (the octets after the first label of a plain question): type, EDNS, fast path and reply limits."""

    __slots__ = (
        *(
            "alone",
            "cache",
            "cells",
            "dnssec_ok",
            "edns",
            "headers",
            "key_ends",
            "opt",
            "qtype",
            "question_end",
            "reply_opt",
        ),
        *("fast_route", "available", "single_flight"),
    )

    def __init__(self, fast_route: FastRoute, qtype: int, opt: bytes, limit: int, cells: dict[int, Cell]) -> None:
        """`opt`: the client's OPT record or b""; `limit`: maximum octets of the reply."""
        outgoing = fast_route.forwarding.outgoing
        bits = OPT_ENDS[opt[5:]] if opt else 0
        self.fast_route = fast_route
        self.cache = fast_route.cache
        self.single_flight = fast_route.forwarding.single_flight
        self.qtype = qtype
        self.edns = 1 if opt else 0
        self.dnssec_ok = bool(bits)
        # Whether a query can be its own flight.
        self.alone = not bits and not fast_route.forwarding.single_flight.context.settings.failover
        self.question_end = -len(opt) or None  # end of the question section in the message, for a slice
        # A cached answer may serve a later client that wants AD, so ask for it, as `cache` does off the fast path.
        seen = 0 if self.cache is None else Flag.AD
        self.headers = {flags: outgoing.header(flags | seen, bool(opt)) for flags in _FLAGS}  # to the upstream
        self.opt = outgoing.opt(bool(opt), self.dnssec_ok)  # likewise
        # The end of the keys that `plugins.cache.entry.key_of` makes.
        self.key_ends = {checking: (checking | bits).to_bytes(2, "big") for checking in (0, Flag.CD)}
        self.available = limit - HEADER_SIZE - len(opt)  # octets for question and answer
        self.reply_opt = pack_root_record_head(0, RRType.OPT, fast_route.payload_size, bits, 0) if opt else b""
        self.cells = cells  # counter cells of the replies, by the size buckets of question and reply


class Tails:
    """Parses and keeps the tails of one socket's questions."""

    def __init__(self, fast_routes: FastRoutes, udp: bool) -> None:
        self._fast_routes = fast_routes
        self._udp = udp
        self._cells: dict[tuple[str, int, bool], dict[int, Cell]] = {}
        self.known: dict[bytes, Tail] = {}
        self.barred: set[bytes] = set()  # tails without a fast path, whatever the first label: names of clusters

    def read(self, data: bytes) -> Tail | None:
        """The tail of this message, also kept for later ones; None if it is no plain question or has no fast path.

        The header is not checked.
        """
        at, size = HEADER_SIZE, len(data)
        while at < size and (octet := data[at]):
            if octet > MAX_LABEL:
                return None
            at += 1 + octet
        end = at + 1 + QUESTION_TAIL_SIZE
        name, opt = data[HEADER_SIZE : at + 1], data[end:]
        qtype = _TYPES.get(data[at + 1 : end])
        if qtype is None or len(name) > MAX_WIRE or name != name.lower() or not _is_plain(opt):
            return None
        fast_route = self._fast_routes.find(name)
        tail = None if fast_route is None else self._tail(fast_route, qtype, opt)
        self._keep(data, name, tail)
        return tail

    def _tail(self, fast_route: FastRoute, qtype: int, opt: bytes) -> Tail:
        limit = MAX_MESSAGE
        if self._udp:
            limit = max(MIN_UDP_PAYLOAD, min(opt[3] << 8 | opt[4], fast_route.payload_size)) if opt else MIN_UDP_PAYLOAD
        cells = self._cells.setdefault((fast_route.label, qtype, bool(opt) and bool(OPT_ENDS[opt[5:]])), {})
        return Tail(fast_route, qtype, opt, limit, cells)

    def _keep(self, data: bytes, name: bytes, tail: Tail | None) -> None:
        """Keep the tail, or that it has no fast path (None), if that holds with every first label before it.

        It does not if names under the same parent differ in their fast path, or if a first label of 63 octets would
        make the name too long.
        """
        rest = name[1 + name[0] :]
        if not rest or len(rest) >= MAX_WIRE - MAX_LABEL or self._fast_routes.is_parent(rest):
            return
        if len(self.known) + len(self.barred) >= _MAX_KNOWN:
            self.known.clear()
            self.barred.clear()
        octets = data[HEADER_SIZE + 1 + name[0] :]
        if tail is None:
            self.barred.add(octets)
        else:
            self.known[octets] = tail


def _is_plain(opt: bytes) -> bool:
    return not opt or (opt[:3] == OPT_BEGIN and opt[5:] in OPT_ENDS)
