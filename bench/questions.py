"""What each load asks, and the files that the generators read it from."""

import struct
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from bench.cluster import NODES, NODES_WITH_ONE, client_on, cluster_ip_names, headless_names
from topodns.dns.message import Flag, RRClass, RRType
from topodns.dns.names import name_wire, parse_name

HOT_NAMES: Final = 150  # of each sort of Service: as many as are busy at a time
HOT_LINES: Final = 20_000
LOOKED_FOR_ELSEWHERE: Final = ("google.com.default.svc", "google.com.svc", "google.com")
DISTINCT: Final = 4_000  # questions that are asked once

_ADDRESS_TYPES: Final = (RRType.A, RRType.AAAA)
_HEADER: Final = struct.Struct("!HHHHHH")
_QUESTION_TAIL: Final = struct.Struct("!HH")
_BARE_OPT: Final = struct.Struct("!BHHIH")


class Question(NamedTuple):
    client: bytes  # packed IPv4 address
    name: str
    rtype: RRType = RRType.A
    edns_size: int = 0  # UDP payload size; 0: no OPT record

    @property
    def message(self) -> bytes:
        """As a stub resolver sends it."""
        head = _HEADER.pack(0, Flag.RD, 1, 0, 0, bool(self.edns_size))
        question = name_wire(parse_name(self.name)) + _QUESTION_TAIL.pack(self.rtype, RRClass.IN)
        return head + question + (_BARE_OPT.pack(0, RRType.OPT, self.edns_size, 0, 0) if self.edns_size else b"")


def hot_questions(rng: Random) -> list[Question]:
    """What pods keep asking: half names of Services, half what the search path makes of a name (NXDOMAIN).

    As in all-queries.txt of kubernetes/perf-tests, without the forms outside of the cluster domain.
    """
    services = [*headless_names()[:HOT_NAMES], *cluster_ip_names()[:HOT_NAMES]]
    searched = [f"{name.split('.')[0]}.{rest}" for name in services for rest in ("svc.cluster.local", "cluster.local")]
    searched += [f"{name}.cluster.local" for name in LOOKED_FOR_ELSEWHERE]
    names = (rng.choice(rng.choice((services, searched))) for _ in range(HOT_LINES))
    return [Question(_some_client(rng), name, rng.choice(_ADDRESS_TYPES)) for name in names]


def first_asked_services(rng: Random) -> list[Question]:
    """Every Service's name, A and AAAA, once each."""
    asked = list(product([*headless_names(), *cluster_ip_names()], _ADDRESS_TYPES))
    rng.shuffle(asked)
    return [Question(_some_client(rng), name, rtype) for name, rtype in asked]


def first_asked_strangers(rng: Random) -> list[Question]:
    """Names that do not exist, once each: what the search path makes of names elsewhere."""
    forms = ("svc.cluster.local", "cluster.local", "ns0.svc.cluster.local")
    names = (f"host{number}.example.{forms[number % len(forms)]}" for number in range(DISTINCT))
    return [Question(_some_client(rng), name, rng.choice(_ADDRESS_TYPES)) for name in names]


def hot_questions_about(name: str) -> list[Question]:
    """One name, from clients on the nodes where it has one endpoint."""
    return [Question(client_on(node), name) for node in range(NODES_WITH_ONE)]


def distinct_questions_about(name: str, nodes: Sequence[int] = range(NODES_WITH_ONE)) -> list[Question]:
    """One name from clients on these nodes, each time in a message never seen before.

    The messages differ in their UDP payload size, which is never below what the server sends at most.
    """
    return [
        Question(client_on(nodes[number % len(nodes)]), name, edns_size=1232 + number) for number in range(DISTINCT)
    ]


def write_questions(path: Path, questions: Iterable[Question]) -> Path:
    """Write the file that `ask.c` describes; its path."""
    messages = ((question.client, question.message) for question in questions)
    path.write_bytes(b"".join(client + len(message).to_bytes(2, "big") + message for client, message in messages))
    return path


def write_dnsperf_input(path: Path, questions: Iterable[Question]) -> Path:
    """The same for dnsperf, whose input has no clients and no EDNS; its path."""
    path.write_text("".join(f"{question.name} {question.rtype.name}\n" for question in questions))
    return path


def _some_client(rng: Random) -> bytes:
    return client_on(rng.randrange(NODES))
