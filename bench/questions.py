"""The loads: which client sends which query how often, and the files from which the generators read that."""

import socket
import struct
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from bench.cluster import FEW, MANY, NODES, NODES_WITH_ONE, client_on, cluster_ip_names, headless_names
from topodns.dns.message import Flag, Option
from topodns.dns.name import name_wire, parse_name
from topodns.dns.rrtype import TYPE_NAMES, RRClass, RRType

HOT_NAMES: Final = 150  # of each sort of Service, in the hot loads
HOT_LINES: Final = 20_000
LOOKED_FOR_ELSEWHERE: Final = ("google.com.default.svc", "google.com.svc", "google.com")
DISTINCT: Final = 4_000  # queries that are sent once

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
    cookie: bytes = b""  # of the client (RFC 7873), in the OPT record; b"": none
    capitals: int = 0  # bit number N: the letter in place N of the name is a capital (0x20)
    node: str = ""  # the node identity that a node cache adds, in the OPT record; "": none

    @property
    def message(self) -> bytes:
        """The query in wire form, with the id 0 and RD, as a stub resolver sends it."""
        head = _HEADER.pack(0, Flag.RD, 1, 0, 0, bool(self.edns_size))
        name = bytearray(name_wire(parse_name(self.name)))
        for at in range(len(name)):
            if self.capitals >> at & 1:
                name[at : at + 1] = name[at : at + 1].upper()
        return head + bytes(name) + _QUESTION_TAIL.pack(self.rtype, RRClass.IN) + self._opt

    @property
    def _opt(self) -> bytes:
        if not self.edns_size:
            return b""
        given = ((Option.COOKIE, self.cookie), (Option.NODE_IDENTITY, self.node.encode()))
        options = b"".join(_OPTION_HEAD.pack(code, len(data)) + data for code, data in given if data)
        return _BARE_OPT.pack(0, RRType.OPT, self.edns_size, 0, len(options)) + options


class Load(NamedTuple):
    title: str
    target: str
    questions: list[Question]
    seconds: float = 0.0  # duration of a hot load, whose queries are repeated; 0: each query is sent once


def all_loads(rng: Random) -> list[Load]:
    """All loads of `make bench`, in the order in which a new server gets them: those of names never queried first."""
    few, others = range(NODES_WITH_ONE), range(NODES_WITH_ONE, NODES)
    return [
        Load("never asked: Services", "<= 20", _services_once(rng)),
        Load("never asked: names that do not exist", "<= 12", _nonexistent_once(rng)),
        Load("hot: headless, ClusterIP and NXDOMAIN mixed", "<= 7", hot_questions(rng), seconds=0.8),
        Load("hot: the same, each with a cookie of its own", "<= 2 x hot", hot_with_cookies(rng), seconds=0.8),
        Load("hot: the same in mixed case (0x20)", "<= 2 x hot", hot_in_mixed_case(rng), seconds=0.8),
        Load("hot: 1 match of 5,000 endpoints", "<= next", _same(MANY), seconds=0.3),
        Load("hot: 1 match of 10 endpoints", "", _same(FEW), seconds=0.3),
        Load("not hot: 1 match of 5,000 endpoints", "<= next", _distinct(MANY, few)),
        Load("not hot: 1 match of 10 endpoints", "", _distinct(FEW, few)),
        Load("not hot: 250 matches of 5,000, cut to 1,232 octets", "<= 40", _distinct(MANY, others, first=DISTINCT)),
        Load("not hot: SRV of those 250, cut to 1,232 octets", "< 300", _distinct(MANY, others, RRType.SRV)),
    ]


def hot_questions(rng: Random) -> list[Question]:
    """Half names of Services, half names that a search path makes of others (NXDOMAIN), each many times.

    As in all-queries.txt of kubernetes/perf-tests, without the forms outside of the cluster domain.
    """
    services = [*headless_names()[:HOT_NAMES], *cluster_ip_names()[:HOT_NAMES]]
    searched = [f"{name.split('.')[0]}.{rest}" for name in services for rest in ("svc.cluster.local", "cluster.local")]
    searched += [f"{name}.cluster.local" for name in LOOKED_FOR_ELSEWHERE]
    names = (rng.choice(rng.choice((services, searched))) for _ in range(HOT_LINES))
    return [Question(_some_client(rng), name, rng.choice(_ADDRESS_TYPES)) for name in names]


def hot_with_cookies(rng: Random) -> list[Question]:
    return [question._replace(edns_size=1232, cookie=rng.randbytes(8)) for question in hot_questions(rng)]


def hot_in_mixed_case(rng: Random) -> list[Question]:
    return [question._replace(capitals=rng.getrandbits(255)) for question in hot_questions(rng)]


def _services_once(rng: Random) -> list[Question]:
    asked = list(product([*headless_names(), *cluster_ip_names()], _ADDRESS_TYPES))
    rng.shuffle(asked)
    return [Question(_some_client(rng), name, rtype) for name, rtype in asked]


def _nonexistent_once(rng: Random) -> list[Question]:
    """Names outside of the cluster, with a domain of a search path behind each: none exists."""
    forms = ("svc.cluster.local", "cluster.local", "ns0.svc.cluster.local")
    names = (f"host{number}.example.{forms[number % len(forms)]}" for number in range(DISTINCT))
    return [Question(_some_client(rng), name, rng.choice(_ADDRESS_TYPES)) for name in names]


def _same(name: str) -> list[Question]:
    """One name, from clients on the nodes where it has one endpoint."""
    return [Question(client_on(node), name) for node in range(NODES_WITH_ONE)]


def _distinct(name: str, nodes: range, rtype: int = RRType.A, first: int = 0) -> list[Question]:
    """Queries for one name from clients on these nodes, of which no two are the same message.

    The messages differ in their UDP payload size, which is at least the maximum that the server sends. Messages with
    the same name, type and number are equal: `first` is the number of the first one, if another load has the same name.
    """
    numbered = range(first, first + DISTINCT)
    return [Question(client_on(nodes[number % len(nodes)]), name, rtype, 1232 + number) for number in numbered]


def write_questions(path: Path, questions: Iterable[Question]) -> Path:
    """Write the queries to this path in the format that `questions.h` describes. Returns the path."""
    messages = ((question.client, question.message) for question in questions)
    path.write_bytes(b"".join(client + len(message).to_bytes(2, "big") + message for client, message in messages))
    return path


def read_questions(path: Path) -> list[tuple[bytes, bytes]]:
    """The (packed client, message) pairs of a file of `write_questions`."""
    data, at, questions = path.read_bytes(), 0, []
    while at < len(data):
        end = at + 6 + int.from_bytes(data[at + 4 : at + 6], "big")
        questions.append((data[at : at + 4], data[at + 6 : end]))
        at = end
    return questions


def client_socket(client: bytes, port: int, address: str = "127.0.0.1") -> socket.socket:
    """A UDP socket bound to this packed address of the client, connected to `address`:`port`."""
    sock = socket.socket(type=socket.SOCK_DGRAM)
    sock.bind((socket.inet_ntoa(client), 0))
    sock.connect((address, port))
    return sock


def write_dnsperf_input(path: Path, questions: Iterable[Question]) -> Path:
    """Write names and types as dnsperf's input, which has no clients and no EDNS. Returns the path."""
    path.write_text("".join(f"{question.name} {TYPE_NAMES[question.rtype]}\n" for question in questions))
    return path


def _some_client(rng: Random) -> bytes:
    return client_on(rng.randrange(NODES))
