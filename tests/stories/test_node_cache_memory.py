"""A node's cache as a process, with the Corefile of a node: upstreams that go, floods that come, memory that stays."""

import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.event_loops import SLOWNESS
from tests.support.faulty_upstream import ANSWER, BadUpstream, bad_upstream
from tests.support.node_cache_process import node_cache_alone
from tests.support.query_load import Answered, Load
from tests.support.reply_faults import compose, packed, record, wire_name
from tests.support.server_process import Server, until
from tests.support.stub_resolvers import stub_address
from tests.support.upstream_faults import answers, says, silent, slow

RIGHT = packed(ANSWER)
MINIMUM = (30).to_bytes(4, "big")
SOA = record(
    wire_name("example.org"), 6, wire_name("ns.example.org") + wire_name("a.example.org") + bytes(16) + MINIMUM
)
LONGEST = 4.0 * SLOWNESS  # seconds: 1.8 and what a busy machine adds; a stub resolver waits for 5


def names(prefix: str, number: int) -> list[str]:
    return [f"{prefix}{each}.example.org A" for each in range(number)]


def asked_once(server: Server, questions: list[str], source: str = "", window: int = 100) -> Answered:
    with closing(Load(server, False, [RIGHT, MINIMUM], source)) as load:
        return load.run(questions, window=window)


def asked_for(upstream: BadUpstream, prefix: bytes) -> int:
    return sum(each.message[13:].startswith(prefix) for each in tuple(upstream.asked))


def test_n04_all_upstreams_gone_every_cached_name_is_answered_within_two_seconds(tmp_path: Path) -> None:
    cached = names("n", 1000)
    with bad_upstream(answers) as upstream, node_cache_alone(tmp_path, upstream, ttl=1) as server:
        got = asked_once(server, cached)
        assert (got.lost, got.wrong) == ([], [])
        upstream.behaviour = silent
        until(lambda: server.ask(cached[0]).answer[0].split()[1] == "30", "the end of the TTL")
        with closing(Load(server, False, [RIGHT])) as load:
            got = load.run(cached, window=4000, per_second=1000)
        print(f"not known to be gone: p50 {got.percentile(50):.3f} s, longest {max(got.seconds):.3f} s")
        assert (got.lost, got.wrong, len(got.seconds)) == ([], [], 1000)
        assert max(got.seconds) < LONGEST
        until(lambda: server.metric("coredns_proxy_healthcheck_failures_total") > 3, "it is known to be gone")
        with closing(Load(server, False, [RIGHT])) as load:
            got = load.run(cached, window=4000, per_second=1000)
        print(f"known to be gone: p50 {got.percentile(50):.4f} s, longest {max(got.seconds):.3f} s")
        assert (got.lost, got.wrong, len(got.seconds)) == ([], [], 1000)
        assert got.percentile(90) < 0.2 * SLOWNESS


def half_of_them_exist(message: bytes) -> bytes:
    """Those with an even last digit."""
    if message[12 + message[12]] & 1:
        return compose(message, authority=[SOA], rcode=3)
    return compose(message, [record(b"\xc0\x0c", 1, RIGHT)])


FLOOD = 20_000
MAX_GROWTH = 10 << 20  # octets: 6 MiB of answers, and what a flood and Python leave behind


@pytest.mark.parametrize("exist", [False, True], ids=["half of the names do not exist", "all names exist"])
def test_n13_a_flood_of_one_client_s_names_leaves_memory_and_another_s_names_alone(tmp_path: Path, exist: bool) -> None:
    behaviour = answers if exist else says(half_of_them_exist)
    others, flooder = names("other", 1000), stub_address()
    with bad_upstream(behaviour) as upstream, node_cache_alone(tmp_path, upstream) as server:
        source = stub_address()
        for _ in range(2):
            asked_once(server, others, source)
        assert asked_for(upstream, b"other") == 1000
        before = server.resident_bytes()
        got = asked_once(server, names("x", FLOOD), flooder, window=200)
        assert (got.lost, got.wrong) == ([], [])
        growth = server.resident_bytes() - before
        print(f"{before / (1 << 20):.1f} MiB, {growth / (1 << 20):.1f} MiB more")
        assert growth < MAX_GROWTH
        assert server.metric("coredns_cache_evictions_total") > FLOOD / 4
        upstream.behaviour = silent  # so that what is answered is what is known, old by now or not
        got = asked_once(server, others, source, window=1000)
        assert (got.lost, got.wrong, len(got.seconds)) == ([], [], 1000)


SHARE = 1366  # of one client, while others need next to nothing: half of the places that are free then


def test_n14_a_pod_that_floods_leaves_another_pod_s_questions_alone(tmp_path: Path) -> None:
    behaviour = slow(0.3)
    with (
        bad_upstream(lambda asked: silent(asked) if b"junk" in asked.message else behaviour(asked)) as upstream,
        node_cache_alone(tmp_path, upstream) as server,
    ):
        got = asked_once(server, names("before", 60), stub_address(), window=1)
        alone = got.percentile(50)
        flooder, flood = stub_address(), threading.Event()

        def keep_asking() -> None:
            number = 0
            while not flood.is_set():
                with closing(Load(server, False, [RIGHT], flooder)) as load:
                    load.run(names(f"junk{number}-", 2000), window=2000, per_second=2000)
                number += 1

        thread = threading.Thread(target=keep_asking)
        thread.start()
        try:
            until(lambda: server.metric("topodns_forward_dropped_total", reason="client") > 100, "the flood")
            got = asked_once(server, names("beside", 60), stub_address(), window=4)
        finally:
            flood.set()
            thread.join()
        print(f"p50 alone {alone:.3f} s, beside the flood {got.percentile(50):.3f} s, longest {max(got.seconds):.3f} s")
        assert (got.lost, got.wrong, len(got.seconds)) == ([], [], 60)
        assert got.percentile(50) < alone + 0.2 * SLOWNESS
        assert max(got.seconds) < LONGEST
        assert server.metric("topodns_forward_dropped_total", reason="total") == 0
        assert server.metric("topodns_forward_in_flight") <= SHARE + 4


def test_a_name_that_is_denied_is_gone_when_its_ttl_is_over(tmp_path: Path) -> None:
    def denied(message: bytes) -> bytes:
        return compose(message, authority=[SOA], rcode=3)

    with bad_upstream(answers) as upstream, node_cache_alone(tmp_path, upstream, ttl=1) as server:
        name = "web.example.org A"
        assert server.ask(name).data == [ANSWER]
        upstream.behaviour = says(denied)
        until(lambda: asked_for(upstream, b"web") == 2 or not server.ask(name).data, "the end of the TTL")
        assert server.ask(name).rcode == "NXDOMAIN"
        assert server.metric("coredns_cache_served_stale_total") == 0


def test_a_limit_that_is_given_is_kept(tmp_path: Path) -> None:
    with bad_upstream(answers) as upstream, node_cache_alone(tmp_path, upstream, "-cache-octets=1048576") as server:
        asked_once(server, names("x", 5000))
        entries = server.metric("coredns_cache_entries", type="success")
        assert 900 < entries < 2000  # in half a MiB
