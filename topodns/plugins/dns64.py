"""The `dns64` plugin: AAAA records synthesised from A records, for clients that reach IPv4 through a NAT64 (RFC 6147).

Like CoreDNS it synthesises only: no PTR records for the prefix, one prefix for all of IPv4, DO and CD are ignored.
Differences: AAAA records of IPv4-mapped addresses are taken as absent (RFC 6147 section 5.1.4); where there is no A
record, existing AAAA records stay (CoreDNS's `translate_all` loses them), and an error in place of A records is the
answer (CoreDNS makes it an empty one).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv6Network
from typing import Final

from topodns.corefile.arguments import fold_options, once_each, only_arg, parse_network, switch
from topodns.corefile.errors import shown
from topodns.corefile.parser import Directive
from topodns.dns.addresses import IPV4_MAPPED
from topodns.dns.message import Flag, Query, RRset
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.metrics.registry import Published, Reading
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import Plugin
from topodns.plugins.setup import BlockListener, BlockSetup, Install, MetricsSource
from topodns.query.deferred import Deferred
from topodns.query.plugin import Answered, Below, ChainPart, Client, Resolution, rest_on, settled

WELL_KNOWN_PREFIX: Final = bytes.fromhex("0064ff9b") + bytes(8)  # 64:ff9b::/96, RFC 6052 section 2.1


@dataclass(frozen=True, slots=True)
class Dns64:
    prefix: bytes = WELL_KNOWN_PREFIX  # the octets before the IPv4 address: 4, 5, 6, 7, 8 or 12
    translate_all: bool = False  # also for names that have AAAA records
    allow_ipv4: bool = False  # also for clients over IPv4


_PREFIX_LENGTHS: Final = (32, 40, 48, 56, 64, 96)  # RFC 6052 section 2.2


def parse_dns64(directive: Directive, context: Context) -> Dns64:
    once_each(directive)
    settings = Dns64()
    if directive.args:
        settings = _prefix(replace(directive, body=()), settings)
    return fold_options(directive, settings, _DNS64_READERS)


def _prefix(option: Directive, settings: Dns64) -> Dns64:
    text = only_arg(option, "one IPv6 prefix")
    network = parse_network(text)
    if not isinstance(network, IPv6Network) or network.prefixlen not in _PREFIX_LENGTHS or "/" not in text:
        raise option.error(f"'dns64' has the prefix {shown(text)}, expected an IPv6 one: /32, 40, 48, 56, 64 or 96")
    return replace(settings, prefix=network.network_address.packed[: network.prefixlen // 8])


_DNS64_READERS: Final[Mapping[str, Callable[[Directive, Dns64], Dns64]]] = {
    "prefix": _prefix,
    "translate_all": switch("translate_all"),
    "allow_ipv4": switch("allow_ipv4"),
}

_MAX_TTL: Final = 600  # seconds; the limit where no SOA gives the TTL of NODATA (RFC 6147 section 5.1.7)
_RESERVED: Final = 8  # the octet of an IPv6 address that stays zero (RFC 6052 section 2.2)
_IPV6_OCTETS: Final = 16


@dataclass(slots=True)
class Dns64Counts:
    translated: int = 0  # answers; packet cache hits are not counted again


class Translator:
    """The plugin of a `dns64` directive: queries the plugins below for AAAA and, where needed, for A."""

    def __init__(self, settings: Dns64, counts: Dns64Counts | None = None) -> None:
        self.counts = counts or Dns64Counts()
        self._prefix = settings.prefix
        self._translate_all = settings.translate_all
        self._allow_ipv4 = settings.allow_ipv4

    def __call__(self, query: Query, client: Client, below: Below) -> Answered:
        """The answer of the plugins below.

        For AAAA queries of clients over IPv6 (`allow_ipv4`: of all), A records replace absent AAAA records
        (`translate_all`: also existing ones), translated. NXDOMAIN stays.
        """
        answered = below(query, client)
        if query.qtype != RRType.AAAA or query.qclass != RRClass.IN:
            return answered
        if len(client.address) != _IPV6_OCTETS and not self._allow_ipv4:
            return answered
        if isinstance(answered, Resolution):
            return self._translated(answered, query, client, below)
        return self._translated_later(answered, query, client, below)

    async def _translated_later(
        self, deferred: Deferred[Resolution], query: Query, client: Client, below: Below
    ) -> Resolution:
        return await settled(self._translated(await deferred, query, client, below))

    def _translated(self, native: Resolution, query: Query, client: Client, below: Below) -> Answered:
        """The answer to an AAAA query whose answer without translation is `native`.

        In `native`, errors other than NXDOMAIN count as NODATA, which some servers mean by them (RFC 6147 section
        5.1.2).
        """
        _leave_out_mapped(native)
        if native.response.rcode == Rcode.NXDOMAIN or (_has(native, RRType.AAAA) and not self._translate_all):
            return native
        answered = below(query._replace(qtype=RRType.A), client)
        if isinstance(answered, Resolution):
            return self._merge(native, answered)
        return self._merge_later(native, answered)

    async def _merge_later(self, native: Resolution, deferred: Deferred[Resolution]) -> Resolution:
        return self._merge(native, await deferred)

    def _merge(self, native: Resolution, legacy: Resolution) -> Resolution:
        """`legacy`, the answer for A, with its records translated; or `native`, the answer for AAAA, if `legacy` has no
        A record and `native` has AAAA records.
        """
        if not _has(legacy, RRType.A) and _has(native, RRType.AAAA):
            rest_on(native, legacy.facts, legacy.scope, legacy.valid_until)
            return native
        rest_on(legacy, native.facts, native.scope, native.valid_until)
        if _has(legacy, RRType.A):
            self.counts.translated += 1
        response = legacy.response
        response.flags &= ~Flag.AD  # synthesised records are not signed
        most = _ttl_of_absence(native)
        response.answer = tuple(
            self._translate(rrset, most) if rrset.rtype == RRType.A else rrset for rrset in response.answer
        )
        return legacy

    def _translate(self, rrset: RRset, most: int) -> RRset:
        rdatas = tuple(embed(self._prefix, address) for address in rrset.rdatas)
        return rrset._replace(rtype=RRType.AAAA, ttl=min(rrset.ttl, most), rdatas=rdatas)


def embed(prefix: bytes, address: bytes) -> bytes:
    """The packed IPv6 address for a packed IPv4 address under a prefix of 4..8 or 12 octets (RFC 6052 section 2.2)."""
    octets = prefix + address
    if len(prefix) <= _RESERVED:
        octets = octets[:_RESERVED] + b"\0" + octets[_RESERVED:]
    return octets.ljust(_IPV6_OCTETS, b"\0")


def _leave_out_mapped(native: Resolution) -> None:
    """Take IPv4-mapped addresses out of an answer for AAAA."""
    response = native.response
    kept = tuple(map(_unmapped, response.answer))
    if kept != response.answer:
        response.answer = tuple(rrset for rrset in kept if rrset.rdatas)
        response.flags &= ~Flag.AD


def _unmapped(rrset: RRset) -> RRset:
    if rrset.rtype != RRType.AAAA:
        return rrset
    return rrset._replace(rdatas=tuple(rdata for rdata in rrset.rdatas if not rdata.startswith(IPV4_MAPPED)))


def _has(resolution: Resolution, rtype: int) -> bool:
    return any(rrset.rtype == rtype for rrset in resolution.response.answer)


def _ttl_of_absence(native: Resolution) -> int:
    return next((rrset.ttl for rrset in native.response.authority if rrset.rtype == RRType.SOA), _MAX_TTL)


def _setup(settings: Dns64, block: BlockSetup) -> Install:
    def install(listener: BlockListener) -> tuple[ChainPart]:
        return (ChainPart(around=Translator(settings, block.process.shared.get(Dns64Counts, listener.server))),)

    return install


def _readings(source: MetricsSource) -> Iterator[Published]:
    yield Reading(
        "coredns_dns64_requests_translated",
        "Answers with AAAA records made from A records.",
        "counter",
        ("server",),
        lambda: [(labels, counts.translated) for labels, counts in source.shared.all(Dns64Counts)],
    )


PLUGIN: Final = Plugin(
    name="dns64",
    coredns=differs(
        Effect.ANSWER,
        "mapped AAAA records count as none; others stay where there is no A record, and errors stay errors",
    ),
    parse=parse_dns64,
    setup=_setup,
    metrics=_readings,
)
