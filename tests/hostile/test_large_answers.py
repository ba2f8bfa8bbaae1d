"""Questions about Services of 5,000 endpoints or ports, asked so that no kept reply fits: each costs about the same.

Prices are the server's CPU, as multiples of what questions about three endpoints cost: one over UDP that is answered
anew takes 50 to 60 microseconds on a machine where nothing else runs. Both are asked in alternating rounds and the
medians of the rounds compared, so that other work on the machine disturbs both or neither.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pytest

from tests.support.dns_messages import Opt, query
from tests.support.server_process import Server, open_tcp, open_udp, receive_framed, send_framed, serving, until
from tests.support.steady_client import MIN_ASKED, cpu_seconds, victim

NUMBER, SLICE_SIZE = 5_000, 100
COOKIE = 10
PLAIN = "few.default.svc.cluster.local SRV"  # the question about three endpoints
ROUNDS = 15
TOGETHER = 10  # questions of one round, whose price is taken together
UDP_PRICE = 5  # at most; 300 microseconds are 5 to 6
FIRST_TCP_PRICE = 100  # 5 milliseconds
VICTIM_SECONDS = 0.02

COREFILE = """
. {
    bind HERE
    kubernetes cluster.local {
        manifests cluster.json
    }
    k8s_external ext.example {
        headless
    }
    topology
    loadbalance
}
"""

Object = dict[str, Any]


def service(name: str, keys: str = "") -> Object:
    annotations = {"topodns.io/topology-keys": keys} if keys else {}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": "None"}}


def endpoint_slice(name: str, members: range, hostname: str = "") -> Object:
    metadata = {"name": f"{name}-{members.start:05}", "namespace": "default"}
    named = {"hostname": hostname} if hostname else {}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata | {"labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 80}, {"name": "metrics", "port": 9090}],
        "endpoints": [
            {"addresses": [f"10.0.{at >> 8}.{at & 255}"], "nodeName": f"n{at % 3}", **named} for at in members
        ],
    }


def objects() -> Iterator[Object]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    for at in range(3):
        labels = {"kubernetes.io/hostname": f"n{at}"}
        status = {"addresses": [{"type": "InternalIP", "address": f"127.77.0.{at + 1}"}]}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{at}", "labels": labels}, "status": status}
    yield service("few")
    yield endpoint_slice("few", range(3))
    for name, keys, hostname in (
        ("many", "", ""),
        ("near", "kubernetes.io/hostname", ""),
        ("same", "", "same"),
        ("fresh", "", ""),
    ):
        yield service(name, keys)
        for first in range(0, NUMBER, SLICE_SIZE):
            yield endpoint_slice(name, range(first, first + SLICE_SIZE), hostname)
    yield from of_many_ports()


def of_many_ports() -> Iterator[Object]:
    """`ports`: sixty Pods that give a hundred named ports sixty different numbers. `wide`: a Service of 5,000 ports."""
    yield service("ports", "kubernetes.io/hostname,*")
    for at in range(60):
        own = [{"name": f"p{number}", "port": 1000 + 100 * at + number} for number in range(100)]
        yield endpoint_slice("ports", range(3 * at, 3 * at + 3)) | {"ports": own}
    wide = service("wide")
    wide["spec"] = {
        "clusterIP": "10.96.0.1",
        "ports": [{"name": f"p{number}", "port": number} for number in range(1, 5001)],
    }
    yield wide


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory: Path = tmp_path_factory.mktemp("large")
    items = {"apiVersion": "v1", "kind": "List", "items": list(objects())}
    (directory / "cluster.json").write_text(json.dumps(items))
    with serving(directory, COREFILE) as server:
        yield server


def never_kept(question: str, rng: Random) -> bytes:
    """The question with a cookie, a spelling and a payload size of its own, so that it is answered anew each time."""
    name, qtype = question.split()
    spelled = "".join(rng.choice((char.lower(), char.upper())) for char in name)
    return query(f"{spelled} {qtype}", Opt(rng.randrange(1232, 1 << 16), [(COOKIE, rng.randbytes(8))]))


Ask = Callable[[], bytes]  # one exchange; the reply


def price(server: Server, ask: Ask, number: int) -> float:
    """CPU seconds of the server per question."""
    before = cpu_seconds(server.pid)
    for _ in range(number):
        reply = ask()
        assert reply[3] & 0xF == 0, reply  # NOERROR
    return (cpu_seconds(server.pid) - before) / number


@contextmanager
def asking(server: Server, question: str) -> Iterator[Ask]:
    """Asks over UDP, so that no reply is kept."""
    rng = Random(question)
    with open_udp((server.address, server.port), "127.77.0.1") as sock:

        def ask() -> bytes:
            sock.send(never_kept(question, rng))
            return sock.recv(65535)

        yield ask


def relative_price(server: Server, ask: Ask) -> float:
    """The price of a question, as a multiple of the plain question's."""
    plain_prices, prices = [], []
    with asking(server, PLAIN) as ask_plain:
        for _ in range(ROUNDS):
            plain_prices.append(price(server, ask_plain, TOGETHER))
            prices.append(price(server, ask, TOGETHER))
    return median(prices) / median(plain_prices)


def first_price(server: Server, ask: Ask) -> float:
    """The price of the first question about something, as a multiple of the plain question's."""
    with asking(server, PLAIN) as ask_plain:
        plain = [price(server, ask_plain, TOGETHER) for _ in range(ROUNDS)]
        first = price(server, ask, 1)
    return first / median(plain)


QUESTIONS = (
    "many.default.svc.cluster.local SRV",
    "_http._tcp.many.default.svc.cluster.local SRV",
    "near.default.svc.cluster.local SRV",
    "same.default.svc.cluster.local SRV",
    "same.same.default.svc.cluster.local SRV",
    "10-0-5-5.many.default.svc.cluster.local SRV",
    "many.default.ext.example SRV",
    "many.default.svc.cluster.local A",
    "_http._tcp.many.default.svc.cluster.local A",
    "near.default.svc.cluster.local A",
    "10-0-5-5.many.default.svc.cluster.local A",
    "many.default.ext.example A",
    "10-0-5-5.many.default.ext.example A",
    "ports.default.svc.cluster.local SRV",
    "_p7._tcp.ports.default.svc.cluster.local SRV",
    "10-0-0-5.ports.default.svc.cluster.local SRV",
    "_tcp.ports.default.svc.cluster.local A",
    "ports.default.ext.example SRV",
    "wide.default.svc.cluster.local SRV",
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_query_for_thousands_of_endpoints_costs_about_as_much_as_one_for_three(server: Server, question: str) -> None:
    with asking(server, question) as ask:
        ask()  # the first after a change finds out what there is
        assert relative_price(server, ask) <= UDP_PRICE


def test_the_first_question_about_thousands_of_ports_costs_no_more_than_one_about_endpoints(tmp_path: Path) -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": list(objects())}
    (tmp_path / "cluster.json").write_text(json.dumps(items))
    with serving(tmp_path, COREFILE) as server, asking(server, "ports.default.svc.cluster.local SRV") as ask:
        assert first_price(server, ask) <= FIRST_TCP_PRICE


def test_one_that_is_kept_soon_costs_no_more_the_second_time(server: Server) -> None:
    sizes = iter(range(1300, 5000))
    with open_udp((server.address, server.port)) as sock:

        def ask_twice() -> bytes:
            message = query("many.default.svc.cluster.local A", Opt(next(sizes)))
            sock.send(message)
            sock.recv(65535)
            sock.send(message)
            return sock.recv(65535)

        assert relative_price(server, ask_twice) <= 2 * UDP_PRICE


def test_the_first_answer_over_tcp_is_cheap_and_the_next_ones_are_cheaper(server: Server) -> None:
    rng = Random(1)
    with open_tcp((server.address, server.port)) as sock:

        def ask() -> bytes:
            send_framed(sock, never_kept("fresh.default.svc.cluster.local SRV", rng))
            return receive_framed(sock)

        first, later = first_price(server, ask), relative_price(server, ask)
    assert first <= FIRST_TCP_PRICE
    assert later <= first / 2


def test_a_victim_does_not_wait_for_a_flood_of_large_questions(server: Server) -> None:
    done = threading.Event()

    def flood() -> None:
        rng = Random(2)
        with open_udp((server.address, server.port)) as sock:
            sock.setblocking(False)
            while not done.is_set():
                for _ in range(32):
                    with suppress(BlockingIOError):
                        sock.send(never_kept("many.default.svc.cluster.local SRV", rng))
                while not done.wait(0.01):
                    with suppress(BlockingIOError):
                        sock.recv(65535)
                        continue
                    break

    attack = threading.Thread(target=flood)
    attack.start()
    try:
        with victim(server, "few.default.svc.cluster.local A", right="10.0.0.1", per_second=100) as fate:
            done.wait(1.5)
            until(lambda: fate.asked >= MIN_ASKED, "enough asked for a verdict")
    finally:
        done.set()
        attack.join()
    assert (fate.lost, fate.wrong) == (0, []), fate
    assert fate.cpu(99) <= VICTIM_SECONDS, fate
