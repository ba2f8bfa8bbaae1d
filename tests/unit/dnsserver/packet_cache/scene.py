"""A packet cache that knows where three clients are, and what its answers rest on."""

import struct
from collections.abc import Hashable, Mapping
from random import Random

from tests.support.in_memory_server import ready_made
from tests.support.model_builders import packed
from topodns.dependency import Fact, address_fact, namespace_fact, node_fact, service_fact
from topodns.dns.message import Response, RRset
from topodns.dns.rrtype import RRType
from topodns.dns.wire_reader import read_query
from topodns.dns.wire_writer import write_response
from topodns.dnsserver.packet_cache.table import PacketCache
from topodns.query.counters import QueryCounters, ReplyKind
from topodns.query.plugin import Resolution, Scope

CELL = QueryCounters("dns://:53", "udp", "1").cell(ReplyKind(".", "A", "NOERROR", "kubernetes", False, "", "", 0, 0))
A1, A2, B1, ELSEWHERE = map(packed, ("10.240.1.1", "10.240.1.2", "10.240.2.1", "192.0.2.1"))
NODES = {A1: "node-a", A2: "node-a", B1: "node-b"}
WEB, DB, SHOP, NODE_A, POD = (
    service_fact("shop", "web"),
    service_fact("shop", "db"),
    namespace_fact("shop"),
    node_fact("node-a"),
    address_fact(packed("10.244.1.7")),
)


def addresses(number: int) -> Response:
    rdatas = tuple(struct.pack("!I", 0x0A000000 + each) for each in range(number))
    return Response(answer=(RRset(b"", RRType.A, 5, rdatas),))


class Table(PacketCache):
    """A table that knows where NODES are, and is offered messages with what would be replied."""

    def __init__(self, nodes: Mapping[bytes, str] = NODES) -> None:
        self.located: list[bytes] = []

        def view_key(address: bytes) -> Hashable:
            self.located.append(address)
            return nodes.get(address, "")

        super().__init__(view_key, Random(1), lambda: 0.0)

    def asked(
        self,
        data: bytes,
        address: bytes = ELSEWHERE,
        response: Response | None = None,
        scope: Scope = Scope.EVERYONE,
        facts: tuple[Fact, ...] = (),
        rotate: bool = False,
        limit: int = 512,
        times: int = 1,
    ) -> bytes:
        """The reply to a message that came through the steps, that often."""
        read = read_query(data)
        decided = response if response is not None else addresses(1)
        reply = write_response(read, decided, limit, 1232)
        for _ in range(times):
            self.offer(data, read, address, reply, Resolution(decided, "kubernetes", scope, facts), CELL, rotate)
        return reply

    def ready(self, data: bytes, address: bytes = ELSEWHERE) -> bytes | None:
        return ready_made(self, data, address)
