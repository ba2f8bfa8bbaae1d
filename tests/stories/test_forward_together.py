"""Many clients at once, and clients that are on their way when something changes."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.dns_messages import DO, RD, Opt, Reply, node_identity, query, subnet
from tests.support.faulty_upstream import ANSWER, BadUpstream, bad_upstream
from tests.support.held_upstream import Held, release
from tests.support.reply_faults import at_first
from tests.support.server_process import (
    METRICS,
    Server,
    open_tcp,
    open_udp,
    receive_framed,
    send_framed,
    serving,
    until,
)
from tests.support.stub_resolvers import Stub, ask_together, stub_address
from tests.support.upstream_faults import answers, silent, slow

PORT = 5353
CD = 0x0010
CLIENTS = 200
SAME = "same.example.org A"
VARIANTS = [
    query(SAME),
    query(SAME.title()),
    query(SAME, flags=RD | CD),
    query(SAME, Opt(512)),
    query(SAME, Opt(4096, options=[subnet("10.1.2.0/24"), node_identity("node-a1")])),
    query(SAME, Opt(flags=DO)),
    query("same.example.org AAAA"),
]
DISTINCT = 5
COREFILE = """
.:{at} {{
    bind HERE
    prometheus HERE:{metrics}
    chaos
    forward . 127.0.0.1:{port}
}}
"""

each_transport = pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])


@contextmanager
def forwarding(directory: Path, upstream: BadUpstream) -> Iterator[Server]:
    with serving(directory, corefile(upstream), port=PORT) as server:
        yield server


def corefile(upstream: BadUpstream) -> str:
    return COREFILE.format(at=PORT, metrics=METRICS, port=upstream.port)


class Client:
    """One socket with questions under way."""

    def __init__(self, server: Server, tcp: bool) -> None:
        at = (server.address, server.port)
        self._sock = (open_tcp if tcp else open_udp)(at, stub_address())
        self._tcp = tcp

    def ask(self, *questions: str) -> None:
        """Ask what no upstream will answer for now; return when the server has read it all."""
        ask_all([self], *questions)

    def send(self, *messages: bytes) -> None:
        if self._tcp:
            send_framed(self._sock, *messages)
            return
        for message in messages:
            self._sock.send(message)

    def reply(self) -> Reply:
        return Reply(receive_framed(self._sock) if self._tcp else self._sock.recv(65535))

    def close(self) -> None:
        self._sock.close()


def ask_all(asking: Sequence[Client], *questions: str) -> None:
    """The same from each of these, all before the server is awaited, whose first query must not time out meanwhile."""
    last = query("version.bind CH TXT")  # answered at once
    for client in asking:
        client.send(*map(query, questions), last)
    for client in asking:
        assert client.reply().wire[:2] == last[:2]


@contextmanager
def clients(server: Server, number: int, tcp: bool) -> Iterator[list[Client]]:
    with ExitStack() as stack:
        opened = [Client(server, tcp) for _ in range(number)]
        for client in opened:
            stack.callback(client.close)
        yield opened


@each_transport
def test_n02_two_hundred_clients_with_one_question_make_one_query(tmp_path: Path, tcp: bool) -> None:
    held = Held()
    with bad_upstream(held) as upstream, forwarding(tmp_path, upstream) as server:
        with clients(server, CLIENTS, tcp) as asking:
            ask_all(asking, "popular.example.org A")
            until(lambda: held.kept, "a query")
            release(upstream)
            assert [client.reply().data for client in asking] == [[ANSWER]] * CLIENTS
        assert len(upstream.asked) == 1 + 1  # and the release
        assert [asked.transport for asked in upstream.asked] == ["tcp" if tcp else "udp", "udp"]


@each_transport
def test_clients_with_questions_that_differ_make_a_query_each(tmp_path: Path, tcp: bool) -> None:
    """The type, CD, DO and EDNS can change an answer; the spelling, the id, the payload size and options cannot."""
    held = Held()
    with bad_upstream(held) as upstream, forwarding(tmp_path, upstream) as server:
        with clients(server, len(VARIANTS), tcp) as asking:
            for client, variant in zip(asking, VARIANTS, strict=True):
                client.send(variant)
            until(lambda: len(held.kept) == DISTINCT, "the queries")
            release(upstream)
            assert [client.reply().rcode for client in asking] == ["NOERROR"] * len(VARIANTS)
        assert len(upstream.asked) == DISTINCT + 1


PER_CLIENT = 1366  # questions that may wait for upstreams while no other client's do: half of what then is free
FLOOD = 2000


def test_n14_a_flooding_client_costs_no_other_client_its_answer(tmp_path: Path) -> None:
    held = Held()
    with (
        bad_upstream(lambda asked: answers(asked) if b"other" in asked.message else held(asked)) as upstream,
        forwarding(tmp_path, upstream) as server,
        clients(server, 1, tcp=False) as (flooding,),
    ):
        for first in range(0, FLOOD, 50):
            flooding.ask(*(f"flood-{number}.example.org A" for number in range(first, first + 50)))
        assert server.metric("topodns_forward_in_flight") == PER_CLIENT
        assert server.metric("topodns_forward_dropped_total", reason="client") == FLOOD - PER_CLIENT
        stubs = [Stub(f"other-{number}.example.org A", tcp=number % 2 > 0) for number in range(40)]
        assert {str(got) for got in ask_together(server, stubs)} == {f"NOERROR {ANSWER}"}
        release(upstream)


@each_transport
def test_queries_in_flight_at_sigterm_are_answered(tmp_path: Path, tcp: bool) -> None:
    names = [f"late-{number}.example.org A" for number in range(20)]
    held = Held()
    with bad_upstream(held) as upstream, forwarding(tmp_path, upstream) as server:
        with clients(server, 5, tcp) as asking:
            for client in asking:
                client.ask(*names)
            until(lambda: len(held.kept) == len(names), "the queries")
            server.signal(signal.SIGTERM)
            until(lambda: refuses_connections(server), "the drain")
            release(upstream)
            for client in asking:
                assert [client.reply().data for _ in names] == [[ANSWER]] * len(names)
        assert server.wait() == 0


def test_queries_that_no_upstream_answers_are_answered_before_the_end_and_others_meanwhile(tmp_path: Path) -> None:
    with bad_upstream(silent) as upstream, forwarding(tmp_path, upstream) as server:
        with clients(server, 2, tcp=False) as over_udp, clients(server, 2, tcp=True) as over_tcp:
            for number, client in enumerate((*over_udp, *over_tcp)):
                client.ask(f"never-{number}.example.org A")
            server.signal(signal.SIGTERM)
            until(lambda: refuses_connections(server), "the drain")
            assert server.ask("version.bind CH TXT").rcode == "NOERROR"
            assert [client.reply().rcode for client in (*over_udp, *over_tcp)] == ["SERVFAIL"] * 4
        assert server.wait() == 0


def refuses_connections(server: Server) -> bool:
    try:
        open_tcp((server.address, server.port)).close()
    except ConnectionRefusedError:
        return True
    return False


def reload(server: Server, directory: Path, corefile: str) -> None:
    done = len(server.lines("Reloading complete"))
    (directory / "Corefile").write_text(corefile.replace("HERE", server.address))
    server.signal(signal.SIGUSR1)
    until(lambda: len(server.lines("Reloading complete")) > done, "the reload")


def test_a_query_in_flight_over_a_reload_is_still_retried(tmp_path: Path) -> None:
    """Its upstream is no longer in the Corefile, and answers only when it is asked for the second time."""
    with bad_upstream(at_first(silent)) as old, bad_upstream(answers) as new, forwarding(tmp_path, old) as server:
        with clients(server, 1, tcp=False) as (over_udp,), clients(server, 1, tcp=True) as (over_tcp,):
            over_udp.ask("retried.example.org A")
            over_tcp.ask("retried-over-tcp.example.org A")
            until(lambda: len(old.asked) == 2, "the queries")
            reload(server, tmp_path, corefile(new))
            assert [client.reply().data for client in (over_udp, over_tcp)] == [[ANSWER]] * 2
        assert new.asked == []


@each_transport
def test_no_query_is_lost_while_upstreams_come_and_go(tmp_path: Path, tcp: bool) -> None:
    with bad_upstream(slow(0.05)) as one, bad_upstream(answers) as other, forwarding(tmp_path, one) as server:
        asking = Asking(server, tcp)
        asking.start()
        try:
            for upstream in (other, one, other, one):
                reload(server, tmp_path, corefile(upstream))
                asked = len(upstream.asked)
                until(partial(goes_on, asking, upstream, asked + 200), "queries to the new upstream")
        finally:
            asking.stop()
        assert asking.failure == ""


def goes_on(asking: "Asking", upstream: BadUpstream, number: int) -> bool:
    return asking.failure != "" or len(upstream.asked) >= number


class Asking(threading.Thread):
    """Asks for one new name after the other, a window at a time, until stopped. `failure` is the first problem."""

    WINDOW = 50

    def __init__(self, server: Server, tcp: bool) -> None:
        super().__init__(name="asking")
        self._client = Client(server, tcp)
        self._ended = threading.Event()
        self.answered = 0
        self.failure = ""

    def run(self) -> None:
        while not self._ended.is_set() and not self.failure:
            names = [f"n{self.answered + number}.example.org A" for number in range(self.WINDOW)]
            try:
                self._client.send(*map(query, names))
                wrong = [str(reply) for reply in (self._client.reply() for _ in names) if reply.data != [ANSWER]]
            except OSError as lost:
                wrong = [repr(lost)]
            self.failure = "; ".join(wrong)
            self.answered += self.WINDOW

    def stop(self) -> None:
        self._ended.set()
        self.join()
        self._client.close()
