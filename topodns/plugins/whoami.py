"""The `whoami` plugin: returns the client's own address, port and transport in the additional section."""

import struct
from typing import Final

from topodns.dns.message import Query, Response, RRset
from topodns.dns.name import MAX_WIRE, ROOT, label_wire, name_wire
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.plugins.compatibility import same
from topodns.plugins.plugin import Plugin, parse_flag
from topodns.plugins.setup import BlockSetup, Install, everywhere
from topodns.query.plugin import ChainPart, Client, Resolution, Scope


def whoami(query: Query, client: Client) -> Resolution | None:
    """For any name and type of class IN: A or AAAA with the client's address, SRV `_udp` or `_tcp` with its port.

    The records are in the additional section, with TTL 0; the answer is empty.

    The SRV record is left out where its label would make the name too long. None for other classes.
    """
    if query.qclass != RRClass.IN:
        return None
    rtype = RRType.A if len(client.address) == 4 else RRType.AAAA
    additional: tuple[RRset, ...] = (RRset(b"", rtype, 0, (client.address,)),)
    srv_owner = label_wire(f"_{client.transport}") + query.spelling
    if len(srv_owner) <= MAX_WIRE:
        srv = struct.pack(">3H", 0, 0, client.port) + name_wire(ROOT)
        additional += (RRset(srv_owner, RRType.SRV, 0, (srv,)),)
    return Resolution(Response(additional=additional), "whoami", Scope.CLIENT)


def _setup(settings: bool, block: BlockSetup) -> Install:
    return everywhere(ChainPart(step=whoami))


PLUGIN: Final = Plugin(
    name="whoami",
    coredns=same(),
    parse=parse_flag,
    setup=_setup,
    unanswered=Rcode.SERVFAIL,
)
