"""Host names of upstreams: their addresses are looked up whenever a Corefile is loaded, as in CoreDNS."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address
from typing import Final

from topodns.corefile.errors import ConfigError
from topodns.corefile.files import load_nameservers
from topodns.dns.message import Flag
from topodns.dns.name import name_wire, parse_name
from topodns.dns.response_reader import read_reply
from topodns.dns.rrtype import RRClass, RRType
from topodns.dns.wire_format import pack_header_without_id, pack_question_tail
from topodns.dns.wire_reader import WireError
from topodns.net.loop_timers import LoopTimers
from topodns.net.upstream.address import failure_of
from topodns.net.upstream.client import DnsUpstream, open_upstream
from topodns.plugins.block import Settings
from topodns.plugins.forward.settings import Forward, UpstreamAddress
from topodns.query.upstream import Failure, Transport, UpstreamQuery

TIMEOUT: Final = 2.0  # seconds for each name server, as in CoreDNS
RESOLV_CONF: Final = "/etc/resolv.conf"

Addresses = Mapping[str, Sequence[str]]
"""The addresses of host names; a key is the name, and the resolvers that were asked."""


async def look_up(settings: Settings) -> Addresses:
    """The addresses of all host names in `forward`. Raises ConfigError, with the directive's place, if one has none."""
    wanted = {
        _key(forward, upstream): (forward, upstream)
        for block in settings.blocks
        for forward in block.settings.get("forward") or ()
        for upstream in forward.upstreams
        if upstream.is_name
    }
    found = await asyncio.gather(*(_addresses(*each) for each in wanted.values()))
    return dict(zip(wanted, found, strict=True))


def with_addresses(settings: Settings, addresses: Addresses) -> Settings:
    """These settings with the addresses in place of the host names."""
    blocks = tuple(
        replace(block, settings={**block.settings, "forward": tuple(_expanded(each, addresses) for each in forwards)})
        if (forwards := block.settings.get("forward")) is not None
        else block
        for block in settings.blocks
    )
    expanded = replace(settings.expanded, addresses=addresses) if settings.expanded is not None else None
    return replace(settings, blocks=blocks, expanded=expanded)


def _key(forward: Forward, upstream: UpstreamAddress) -> str:
    return " ".join([upstream.host, *(resolver.name for resolver in forward.resolvers)])


def _expanded(forward: Forward, addresses: Addresses) -> Forward:
    found = [
        replace(upstream, host=host, is_name=False) if upstream.is_name else upstream
        for upstream in forward.upstreams
        for host in (addresses[_key(forward, upstream)] if upstream.is_name else ("",))
    ]
    return replace(forward, upstreams=tuple(dict.fromkeys(found)))


async def _addresses(forward: Forward, upstream: UpstreamAddress) -> list[str]:
    """The addresses that the first resolver with any has. Raises ConfigError if none has."""
    resolvers = forward.resolvers or tuple(UpstreamAddress(host, 53) for host in load_nameservers(RESOLV_CONF))
    problems = []
    for resolver in resolvers:
        try:
            asked = open_upstream(asyncio.get_running_loop(), resolver.host, resolver.port)
        except OSError as problem:
            problems.append(f"{resolver.name}: {failure_of(problem).problem}")
            continue
        try:
            results = await asyncio.gather(*(_ask(asked, upstream.host, rtype) for rtype in (RRType.A, RRType.AAAA)))
        finally:
            asked.close()
        if found := [address for result in results if isinstance(result, list) for address in result]:
            return found
        reasons = [result for result in results if isinstance(result, str)]
        problems.append(f"{resolver.name}: {reasons[0] if reasons else 'no addresses'}")
    why = ", ".join(problems) or f"{RESOLV_CONF} has no name server"
    raise ConfigError(
        forward.file, forward.line, f"'forward' has {upstream.host}, expected a name with addresses; found {why}"
    )


async def _ask(server: DnsUpstream, name: str, rtype: int) -> list[str] | str:
    """The addresses of this type that the reply has, or why there is none."""
    for transport in (Transport.UDP, Transport.TCP):
        query = _AddressQuery(name, rtype)
        server.exchange(query, transport, TIMEOUT, LoopTimers().time())
        result = await query.result
        if isinstance(result, Failure):
            return result.problem
        try:
            reply = read_reply(result)
        except WireError as problem:
            return str(problem)
        if not reply.flags & Flag.TC:
            break
    return [str(ip_address(rdata)) for rrset in reply.answer if rrset.rtype == rtype for rdata in rrset.rdatas]


class _AddressQuery(UpstreamQuery):
    __slots__ = ("result",)

    def __init__(self, name: str, rtype: int) -> None:
        self.question = name_wire(parse_name(name)) + pack_question_tail(rtype, RRClass.IN)
        self.message = pack_header_without_id(Flag.RD, 1, 0, 0, 0) + self.question
        self.carrier = self.twin = None
        self.result: asyncio.Future[bytes | Failure] = asyncio.get_running_loop().create_future()

    def on_reply(self, result: bytes | Failure) -> None:
        if not self.result.done():
            self.result.set_result(result)
