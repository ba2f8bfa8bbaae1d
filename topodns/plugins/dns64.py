"""The `dns64` directive: AAAA records made from A records, for clients that reach IPv4 through a NAT64 (RFC 6147).

As CoreDNS does it, which is the synthesis alone: no PTR records for the prefix, one prefix for all of IPv4, no regard
for DO and CD. What differs: where there is no A record either, AAAA records that are there stay (CoreDNS's
`translate_all` loses them), and an error stays an error (CoreDNS makes it an empty answer).
"""

from typing import Final

from topodns.dns.message import Flag, Query, Rcode, RRClass, RRset, RRType
from topodns.resolve.course import Course
from topodns.resolve.grounds import rest_on
from topodns.resolve.part_counts import Dns64Counts
from topodns.resolve.step import Answered, Below, Client, Resolution, settled
from topodns.settings.dns64 import Dns64

_A, _AAAA, _SOA = int(RRType.A), int(RRType.AAAA), int(RRType.SOA)
_IN: Final = int(RRClass.IN)
_NXDOMAIN: Final = int(Rcode.NXDOMAIN)
_MAX_TTL: Final = 600  # seconds, where no SOA says how long the name has no AAAA record (RFC 6147 section 5.1.7)
_RESERVED: Final = 8  # the octet of an address that stays zero (RFC 6052 section 2.2)
_IPV6_OCTETS: Final = 16


class Translator:
    """The around of a `dns64` directive."""

    def __init__(self, settings: Dns64, counts: Dns64Counts | None = None) -> None:
        self.counts = counts or Dns64Counts()
        self._prefix = settings.prefix
        self._translate_all = settings.translate_all
        self._allow_ipv4 = settings.allow_ipv4

    def __call__(self, query: Query, client: Client, below: Below) -> Answered:
        """What is below, translated where it has no AAAA record and the client is one of those that need it."""
        answered = below(query, client)
        if query.qtype != _AAAA or query.qclass != _IN:
            return answered
        if len(client.address) != _IPV6_OCTETS and not self._allow_ipv4:
            return answered
        if isinstance(answered, Resolution):
            return self._translated(answered, query, client, below)
        return self._translated_later(answered, query, client, below)

    async def _translated_later(
        self, course: Course[Resolution], query: Query, client: Client, below: Below
    ) -> Resolution:
        return await settled(self._translated(await course, query, client, below))

    def _translated(self, native: Resolution, query: Query, client: Client, below: Below) -> Answered:
        """An error other than NXDOMAIN counts as no AAAA record, as some servers mean it (RFC 6147 section 5.1.2)."""
        if native.response.rcode == _NXDOMAIN or (_has(native, _AAAA) and not self._translate_all):
            return native
        answered = below(query._replace(qtype=_A), client)
        if isinstance(answered, Resolution):
            return self._merge(native, answered)
        return self._merge_later(native, answered)

    async def _merge_later(self, native: Resolution, course: Course[Resolution]) -> Resolution:
        return self._merge(native, await course)

    def _merge(self, native: Resolution, legacy: Resolution) -> Resolution:
        """The answer about A records, with those translated. `native` is the one about AAAA records."""
        if not _has(legacy, _A) and _has(native, _AAAA):
            rest_on(native, legacy.facts, legacy.scope, legacy.valid_until)
            return native
        rest_on(legacy, native.facts, native.scope, native.valid_until)
        if _has(legacy, _A):
            self.counts.translated += 1
        response = legacy.response
        response.flags &= ~Flag.AD  # nobody has signed what is made here
        most = _ttl_of_absence(native)
        response.answer = tuple(
            self._translate(rrset, most) if rrset.rtype == _A else rrset for rrset in response.answer
        )
        return legacy

    def _translate(self, rrset: RRset, most: int) -> RRset:
        rdatas = tuple(embed(self._prefix, address) for address in rrset.rdatas)
        return rrset._replace(rtype=_AAAA, ttl=min(rrset.ttl, most), rdatas=rdatas)


def embed(prefix: bytes, address: bytes) -> bytes:
    """The packed IPv6 address that stands for this packed IPv4 address under a prefix of 4..8 or 12 octets.

    (RFC 6052 section 2.2.)
    """
    octets = prefix + address
    if len(prefix) <= _RESERVED:
        octets = octets[:_RESERVED] + b"\0" + octets[_RESERVED:]
    return octets.ljust(_IPV6_OCTETS, b"\0")


def _has(resolution: Resolution, rtype: int) -> bool:
    return any(rrset.rtype == rtype for rrset in resolution.response.answer)


def _ttl_of_absence(native: Resolution) -> int:
    return next((rrset.ttl for rrset in native.response.authority if rrset.rtype == _SOA), _MAX_TTL)
