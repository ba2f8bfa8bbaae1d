"""Packets that ask the same in ever new octets: random cookies, padding, unknown options, mixed case (0x20)."""

import socket
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.support.demo import ROOT
from tests.support.dns_messages import Opt, query
from tests.support.server_process import Server, exchange_tcp, open_udp, serving, until
from tests.support.steady_client import MIN_ASKED, cpu_seconds, victim

COREFILE: Final = f"""
. {{
    bind HERE
    kubernetes cluster.local {{
        manifests {ROOT / "config" / "demo" / "cluster"}
    }}
    topology {{
        locate nodes slices
    }}
    loadbalance
}}
"""
ADDRESS, NAME = "10.96.0.1", "kubernetes.default.svc.cluster.local"
DENIED: Final = "no-such-service.default.svc.cluster.local"
NEAR, NODE = "cache.shop.svc.cluster.local", "127.10.0.5"

WINDOW: Final = 32  # questions that wait for an answer at a time
ANSWERS: Final = 3200  # of each kind and round
ROUNDS: Final = range(3, 13)  # at least, at most: the least CPU counts, which other programs only make more
MOST: Final = 2.0  # times the CPU of the plain question


def mixed(name: str, rng: Random) -> str:
    return "".join(rng.choice((char, char.upper())) for char in name)


def cookie(rng: Random) -> Opt:
    return Opt(options=[(10, rng.randbytes(8))])


def packets(kind: str, name: str, rng: Random) -> list[bytes]:
    """As many questions for this name as are asked in a round."""
    match kind:
        case "plain":
            return [query(f"{name} A")] * ANSWERS
        case "a cookie":
            return [query(f"{name} A", cookie(rng)) for _ in range(ANSWERS)]
        case "mixed case":
            return [query(f"{mixed(name, rng)} A") for _ in range(ANSWERS)]
        case "padding and an unknown option":
            opts = (Opt(options=[(12, bytes(rng.randrange(32))), (4711, rng.randbytes(4))]) for _ in range(ANSWERS))
            return [query(f"{name} A", opt) for opt in opts]
    raise AssertionError(kind)


def cpu_each(server: Server, messages: Sequence[bytes], sock: socket.socket) -> float:
    """The server's CPU seconds for each of these questions; every one gets its own answer."""
    before = cpu_seconds(server.pid)
    for at in range(0, len(messages), WINDOW):
        asked = messages[at : at + WINDOW]
        for message in asked:
            sock.send(message)
        for message in asked:
            got = sock.recv(4096)
            end = message.index(b"\0", 12) + 5
            assert got[:2] == message[:2], "the id"
            assert got[12:end] == message[12:end], "the question as it was spelled"
    return (cpu_seconds(server.pid) - before) / len(messages)


@pytest.mark.parametrize("name", [NAME, DENIED, NEAR])
def test_a_packet_never_seen_of_a_question_often_asked_costs_at_most_twice_the_same_packet(
    tmp_path: Path, name: str
) -> None:
    rng = Random(1)
    kinds = ("plain", "a cookie", "mixed case", "padding and an unknown option")
    ratios: dict[str, float] = {}
    with serving(tmp_path, COREFILE) as server, open_udp((server.address, server.port), NODE) as sock:
        least = dict.fromkeys(kinds, 1.0)
        with victim(server, f"{NAME} A", ADDRESS) as fate:
            for number in range(1, ROUNDS.stop):
                for kind in kinds:
                    least[kind] = min(least[kind], cpu_each(server, packets(kind, name, rng), sock))
                ratios = {kind: round(cost / least["plain"], 2) for kind, cost in least.items()}
                if number in ROUNDS and max(ratios.values()) <= MOST:
                    break
            until(lambda: fate.asked >= MIN_ASKED, "questions asked")
        assert (fate.lost, fate.wrong) == (0, []), fate
        assert max(ratios.values()) <= MOST, f"{ratios}, {least['plain'] * 1e6:.2f} us for the plain one"


@pytest.mark.parametrize("tcp", [False, True])
def test_a_cached_answer_to_any_other_packet_equals_that_of_a_server_without_cache(tmp_path: Path, tcp: bool) -> None:
    rng = Random(1)
    with serving(tmp_path, COREFILE.replace("loadbalance", "")) as server:
        for name in (NAME, DENIED, NEAR):
            for opt in (None, Opt()):
                first = at_once(server, query(f"{mixed(name, rng)} A", opt, ident=7), tcp)  # by the steps: the first
                for _ in range(20):
                    data = query(f"{mixed(name, rng)} A", opt and cookie(rng), ident=7)
                    end = 12 + len(name) + 2
                    got = at_once(server, data, tcp)
                    assert got[12:end] == data[12:end]
                    assert got.lower() == first.lower()


def at_once(server: Server, data: bytes, tcp: bool) -> bytes:
    if tcp:
        return exchange_tcp(data, (server.address, server.port), NODE)
    with open_udp((server.address, server.port), NODE) as sock:
        sock.send(data)
        return sock.recv(4096)
