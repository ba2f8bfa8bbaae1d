"""Parses plain questions for the fast path: A or AAAA, class IN, in lower case, EDNS without options or none.

Nearly all questions of a cluster differ only in their first label; the rest of the message (its tail) repeats. So a
tail is parsed once, and found by its octets from then on.
"""

from typing import Final

from topodns.dns.name import MAX_LABEL, MAX_WIRE
from topodns.dns.rrtype import ADDRESS_TYPES, RRClass
from topodns.dns.wire_format import HEADER_SIZE, QUESTION_TAIL_SIZE, pack_question_tail, reply_limit
from topodns.dnsserver.fast_forward.eligibility import FastRoute, FastRoutes
from topodns.dnsserver.fast_forward.tail import Tail
from topodns.dnsserver.plain_question import HEADS, OPT_BEGIN, OPT_ENDS
from topodns.query.counters import Cell

_MAX_KNOWN: Final = 512  # tails kept, of some 600 octets each

# Address records: all of one size, without names in them. Other types are too rare to be worth it.
_TYPES: Final = {pack_question_tail(rtype, RRClass.IN): rtype for rtype in ADDRESS_TYPES}


class Tails:
    """Parses and keeps the tails of one socket's questions."""

    def __init__(self, fast_routes: FastRoutes, udp: bool) -> None:
        self._fast_routes = fast_routes
        self._udp = udp
        self._cells: dict[tuple[str, int, bool], dict[int, Cell]] = {}
        # By the question's header after its id, then by the octets of the tail; None for a tail without a fast path,
        # whatever the first label: names of clusters.
        self.known: dict[bytes, dict[bytes, Tail | None]] = {head: {} for head in HEADS}
        self._kept = 0

    def read(self, data: bytes) -> Tail | None:
        """The tail of this message, also kept for later ones; None if it is no plain question or has no fast path.

        Its header is one of HEADS.
        """
        at, size = HEADER_SIZE, len(data)
        while at < size and (octet := data[at]):
            if octet > MAX_LABEL:
                return None
            at += 1 + octet
        end = at + 1 + QUESTION_TAIL_SIZE
        name, opt = data[HEADER_SIZE : at + 1], data[end:]
        qtype = _TYPES.get(data[at + 1 : end])
        flags, edns = HEADS[data[2:HEADER_SIZE]]
        if qtype is None or len(name) > MAX_WIRE or name != name.lower() or not _is_plain(opt) or edns != bool(opt):
            return None
        fast_route = self._fast_routes.find(name)
        tail = None if fast_route is None else self._tail(fast_route, flags, qtype, opt)
        self._keep(data, name, tail)
        return tail

    def _tail(self, fast_route: FastRoute, flags: int, qtype: int, opt: bytes) -> Tail:
        limit = reply_limit(self._udp, opt[3] << 8 | opt[4] if opt else 0, fast_route.payload_size)
        cells = self._cells.setdefault((fast_route.label, qtype, bool(opt) and bool(OPT_ENDS[opt[5:]])), {})
        return Tail(fast_route=fast_route, flags=flags, qtype=qtype, opt=opt, limit=limit, cells=cells)

    def _keep(self, data: bytes, name: bytes, tail: Tail | None) -> None:
        """Keep the tail, or that it has no fast path (None), if that holds with every first label before it.

        It does not if names under the same parent differ in their fast path, or if a first label of 63 octets would
        make the name too long.
        """
        rest = name[1 + name[0] :]
        if not rest or len(rest) >= MAX_WIRE - MAX_LABEL or self._fast_routes.is_parent(rest):
            return
        if self._kept >= _MAX_KNOWN:
            self._kept = 0
            for tails in self.known.values():
                tails.clear()
        self._kept += 1
        self.known[data[2:HEADER_SIZE]][data[HEADER_SIZE + 1 + name[0] :]] = tail


def _is_plain(opt: bytes) -> bool:
    return not opt or (opt[:3] == OPT_BEGIN and opt[5:] in OPT_ENDS)
