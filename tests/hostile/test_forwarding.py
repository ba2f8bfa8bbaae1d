"""Upstreams that go silent, and clients that ask for names which no upstream answers."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from tests.support.background_threads import beside
from tests.support.dns_messages import Opt, query
from tests.support.faulty_upstream import ANSWER, Act, Asked, BadUpstream, bad_upstream
from tests.support.held_upstream import Held, release
from tests.support.query_load import Load
from tests.support.reply_faults import packed
from tests.support.server_process import METRICS, Server, open_udp, serving, until
from tests.support.steady_client import victim
from tests.support.stub_resolvers import stub_address
from tests.support.upstream_faults import answers, question_of, silent, slow

over_each_transport = pytest.mark.parametrize("options", ["", "force_tcp"], ids=["udp", "tcp"])

# A first try lasts nearly as long as a query may, 4 s, so that no second one can be the reason for an answer.
ONE_UPSTREAM = """
.:0 {{
    bind HERE
    prometheus HERE:{metrics}
    errors
    forward . 127.0.0.1:{port} {{
        {options}
        read_timeout 3900ms
    }}
}}
"""

PER_SECOND, SECONDS = 300, 3
LATENCY: Final = 0.45  # seconds; of a resolver that has to ask others


def freezes(after: int, asked: Asked, met: list[Asked], latency: float) -> Sequence[Act]:
    """The first connection says no more after so many queries on it."""
    if asked.connection == 1:
        met.append(asked)
        if len(met) > after:
            return silent(asked)
    return slow(latency)(asked) if latency else answers(asked)


def test_one_of_two_connections_freezes_under_load_and_no_query_of_a_client_is_lost(tmp_path: Path) -> None:
    met: list[Asked] = []
    with (
        bad_upstream(lambda asked: freezes(50, asked, met, LATENCY)) as upstream,
        serving(tmp_path, corefile(upstream.port, "force_tcp")) as server,
        closing(Load(server, False, [packed(ANSWER)], source=stub_address())) as load,
    ):
        names = (f"n{number}.example.org A" for number in range(PER_SECOND * SECONDS))
        got = load.run(names, window=4000, per_second=PER_SECOND)
        assert (got.lost, got.wrong) == ([], [])
        assert len(got.seconds) == PER_SECOND * SECONDS
        assert len(met) > 60, "the connection was not in use when it froze"
        assert server.metric("topodns_forward_dropped_total") == 0


def test_a_single_upstream_over_tcp_is_asked_again_over_another_connection_when_one_is_silent(tmp_path: Path) -> None:
    with (
        bad_upstream(lambda asked: freezes(0, asked, [], 0.0)) as upstream,
        serving(tmp_path, corefile(upstream.port, "force_tcp")) as server,
    ):
        assert server.ask("www.example.org A").data == [ANSWER]
        assert [asked.connection for asked in upstream.asked] == [1, 2]


def test_a_single_upstream_over_udp_is_asked_again_from_another_port_when_a_datagram_is_lost(tmp_path: Path) -> None:
    lost: list[Asked] = []

    def loses_the_first(asked: Asked) -> Sequence[Act]:
        lost.append(asked)
        return silent(asked) if len(lost) == 1 else answers(asked)

    with (
        bad_upstream(loses_the_first) as upstream,
        serving(tmp_path, corefile(upstream.port)) as server,
    ):
        assert server.ask("www.example.org A").data == [ANSWER]
        first, again = upstream.asked
        assert first.port != again.port
        assert first.message[:2] != again.message[:2]
        assert question_of(first.message) == question_of(again.message)


def test_an_answer_that_thousands_wait_for_delays_no_other_client(tmp_path: Path) -> None:
    with (
        bad_upstream(Held()) as upstream,
        serving(
            tmp_path,
            corefile(upstream.port).replace(
                "errors", "errors\nhosts {{\n{}\nfallthrough\n}}".format("192.0.2.1 local.example")
            ),
        ) as server,
        ExitStack() as stack,
    ):
        at = (server.address, server.port)
        for _ in range(16):
            sock = stack.enter_context(open_udp(at, stub_address()))
            for _ in range(240):
                sock.send(query("awaited.example.org A"))
        until(lambda: server.metric("topodns_forward_in_flight") > PLACES - 500, "nearly all places taken")
        with victim(server, "local.example A", "192.0.2.1", per_second=200) as fate:
            until(lambda: fate.asked >= 5, "questions of the victim before")
            release(upstream)
            until(lambda: not server.metric("topodns_forward_in_flight"), "the answer for all")
            until(lambda: fate.asked >= 30, "questions of the victim after")
        assert (fate.lost, fate.wrong) == (0, []), fate
        assert len(upstream.asked) <= 3, "once for all, once more for its slowness, and the release"
        assert fate.cpu(100) < 0.02, fate  # 3,840 answers in one piece take 0.035 and more


ATTACKERS: Final = 20
AT_ONCE: Final = 10  # questions of each, one round after the other
PAUSE: Final = 0.04  # seconds between two rounds: 250 questions a second of each
PLACES: Final = 4096


@over_each_transport
def test_addresses_that_ask_for_dead_names_take_no_place_from_a_client_that_asks_for_good_ones(
    tmp_path: Path, options: str
) -> None:
    held = Held()
    with (
        bad_upstream(lambda asked: answers(asked) if b"good" in asked.message else held(asked)) as upstream,
        serving(tmp_path, corefile(upstream.port, options)) as server,
        released(upstream),  # so that the server can end without waiting for what it has asked
        dead_names(server),
    ):
        until(lambda: server.metric("topodns_forward_in_flight") > PLACES - 100, "all places taken")
        with victim(server, "good.example.org A", ANSWER, per_second=60) as fate:
            until(lambda: fate.asked >= 50, "questions of the victim")
            assert server.metric("topodns_forward_in_flight") > PLACES - 100, "the attack was over too soon"
        assert (fate.lost, fate.wrong) == (0, []), fate
        assert server.metric("topodns_forward_dropped_total", reason="preempted") > 0


@pytest.mark.parametrize("debug", ["", "debug"], ids=["without", "with debug"])
def test_extended_errors_name_no_upstream_unless_the_block_has_debug(tmp_path: Path, debug: str) -> None:
    with bad_upstream(answers) as gone:
        port = gone.port  # and then nothing listens there
    with serving(tmp_path, corefile(port).replace("errors", f"errors\n{debug}")) as server:
        for tcp in (False, True):
            reply = server.ask("www.example.org A", opt=Opt(), tcp=tcp)
            assert reply.rcode == "SERVFAIL"
            assert (f"127.0.0.1:{port}" in reply.ede) == bool(debug)
            assert "127.0.0.1" in reply.ede or reply.ede == "no upstream could be reached"
        assert f"127.0.0.1:{port}: connection refused" in server.wait_for_line("plugin/errors")


def corefile(port: int, options: str = "") -> str:
    return ONE_UPSTREAM.format(metrics=METRICS, port=port, options=options)


@contextmanager
def released(upstream: BadUpstream) -> Iterator[None]:
    """Afterwards the upstream answers the queries that it has held."""
    try:
        yield
    finally:
        release(upstream)


@contextmanager
def dead_names(server: Server) -> Iterator[None]:
    """Addresses that ask for one new name after the other, none of which is answered, until the block ends."""
    with ExitStack() as stack:
        at = (server.address, server.port)
        sockets = [stack.enter_context(open_udp(at, stub_address())) for _ in range(ATTACKERS)]

        def flood(ended: threading.Event) -> None:
            numbers = count()
            while not ended.wait(PAUSE):
                for sock in sockets:
                    for _ in range(AT_ONCE):
                        sock.send(query(f"dead-{next(numbers)}.example.org A"))

        with beside(flood):
            yield
