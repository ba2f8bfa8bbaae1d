"""Queries, each with the client that sends it, and the files from which the generators read them."""

import struct
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from bench.cluster import NODES, client_on, cluster_ip_names, headless_names
from topodns.dns.message import Flag, Option
from topodns.dns.name import name_wire, parse_name
from topodns.dns.rrtype import TYPE_NAMES, RRClass, RRType

HOT_NAMES: Final = 150  # of each sort of Service, in the hot loads
HOT_LINES: Final = 20_000
LOOKED_FOR_ELSEWHERE: Final = ("google.com.default.svc", "google.com.svc", "google.com")

_ADDRESS_TYPES: Final = (RRType.A, RRType.AAAA)
_HEADER: Final = struct.Struct("!HHHHHH")
_QUESTION_TAIL: Final = struct.Struct("!HH")
_BARE_OPT: Final = struct.Struct("!BHHIH")
_OPTION_HEAD: Final = struct.Struct("!HH")


class Question(NamedTuple):
    """A query, and the client that sends it."""

    client: bytes  # packed IPv4 address
    name: str
    rtype: int = RRType.A
    edns_size: int = 0  # UDP payload size; 0: no OPT record
    node: str = ""  # the node identity that a node cache adds, in the OPT record; "": none

    @property
    def message(self) -> bytes:
        """The query in wire form, with the id 0 and RD, as a stub resolver sends it."""
        head = _HEADER.pack(0, Flag.RD, 1, 0, 0, bool(self.edns_size))
        return head + name_wire(parse_name(self.name)) + _QUESTION_TAIL.pack(self.rtype, RRClass.IN) + self._opt

    @property
    def _opt(self) -> bytes:
        if not self.edns_size:
            return b""
        node = self.node.encode()
        options = _OPTION_HEAD.pack(Option.NODE_IDENTITY, len(node)) + node if node else b""
        return _BARE_OPT.pack(0, RRType.OPT, self.edns_size, 0, len(options)) + options


def hot_questions(rng: Random) -> list[Question]:
    """Half names of Services, half names that a search path makes of others (NXDOMAIN), each many times.

    As in all-queries.txt of kubernetes/perf-tests, without the forms outside of the cluster domain.
    """
    services = [*headless_names()[:HOT_NAMES], *cluster_ip_names()[:HOT_NAMES]]
    searched = [f"{name.split('.')[0]}.{rest}" for name in services for rest in ("svc.cluster.local", "cluster.local")]
    searched += [f"{name}.cluster.local" for name in LOOKED_FOR_ELSEWHERE]
    names = (rng.choice(rng.choice((services, searched))) for _ in range(HOT_LINES))
    return [Question(client_on(rng.randrange(NODES)), name, rng.choice(_ADDRESS_TYPES)) for name in names]


def write_questions(path: Path, questions: Iterable[Question]) -> Path:
    """Write the queries to this path in the format that `questions.h` describes. Returns the path."""
    messages = ((question.client, question.message) for question in questions)
    path.write_bytes(b"".join(client + len(message).to_bytes(2, "big") + message for client, message in messages))
    return path


def write_dnsperf_input(path: Path, questions: Iterable[Question]) -> Path:
    """Write names and types as dnsperf's input, which has no clients and no EDNS. Returns the path."""
    path.write_text("".join(f"{question.name} {TYPE_NAMES[question.rtype]}\n" for question in questions))
    return path
