"""DNS Push Notifications from an upstream to a `cache`: a change is in the next answer, and faults leave the TTL.

The upstream is `tests.support.push_upstream`; tests/stories/test_push_node_cache.py has topodns as the upstream.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.dns_messages import query
from tests.support.event_loops import PATIENCE
from tests.support.faulty_upstream import BadUpstream, bad_upstream
from tests.support.push_upstream import (
    OnDso,
    PushingUpstream,
    closes_the_connection,
    formerr_as_a_query,
    not_implemented,
    says_nothing,
)
from tests.support.server_process import METRICS, Server, serving, until
from tests.support.upstream_faults import question_of
from topodns.dns.tcp_framing import frame

COREFILE = """
.:0 {{
    bind HERE
    prometheus HERE:METRICS
    cache 30 {{
        push
        {options}
    }}
    forward . 127.0.0.1:{port} {{
        force_tcp
    }}
}}
"""
NAME = "www.example.org A"
OLD, NEW = "192.0.2.1", "192.0.2.2"


@contextmanager
def caching(directory: Path, upstream: BadUpstream, *options: str) -> Iterator[Server]:
    text = COREFILE.format(options="\n        ".join(options), port=upstream.port).replace("METRICS", str(METRICS))
    with serving(directory, text) as server:
        yield server


def shows(server: Server, address: str) -> bool:
    return server.ask(NAME).data == [address]


def reloaded(server: Server, times: int) -> bool:
    return len(server.lines("Reloading complete")) == times


def fetches(upstream: BadUpstream) -> int:
    """How often the upstream was asked for the name."""
    return sum(question_of(query(NAME)) in each.message for each in tuple(upstream.asked) if not each.message[2] & 0x78)


def subscribe(server: Server, pushing: PushingUpstream, number: int = 1) -> None:
    def subscribed() -> bool:
        server.ask(NAME)
        return pushing.subscriptions >= number

    until(subscribed, "the subscription")


def test_a_change_is_in_the_next_answer_and_not_a_ttl_later(tmp_path: Path) -> None:
    pushing = PushingUpstream()
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream) as server:
        subscribe(server, pushing)
        for _ in range(5):
            assert shows(server, OLD)
        for address in (NEW, OLD, NEW):
            pushing.change(upstream, NAME, address)
            until(partial(shows, server, address), "the change", 1.0)
            for _ in range(5):
                assert shows(server, address)


def test_a_change_during_a_burst_of_queries_is_one_fetch(tmp_path: Path) -> None:
    pushing = PushingUpstream()
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream) as server:
        subscribe(server, pushing)
        pushing.change(upstream, NAME, NEW)
        until(lambda: shows(server, NEW), "the change")
        before = fetches(upstream)
        for _ in range(50):
            assert shows(server, NEW)
        assert fetches(upstream) == before


def test_the_session_and_the_queries_share_a_connection(tmp_path: Path) -> None:
    pushing = PushingUpstream()
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream) as server:
        subscribe(server, pushing)
        assert upstream.connections == 1
        assert {asked.connection for asked in upstream.asked if asked.transport == "tcp"} == {1}


@pytest.mark.parametrize("fault", [not_implemented, formerr_as_a_query, closes_the_connection, says_nothing])
def test_n21_an_upstream_without_dso_answers_queries_and_is_asked_for_a_session_once(
    tmp_path: Path, fault: OnDso
) -> None:
    pushing = PushingUpstream()
    pushing.on_dso = fault
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream, "success 9984 1 1") as server:
        refused = "topodns_cache_push_sessions_ended_total"
        until(lambda: shows(server, OLD) and server.metric(refused, reason="refused") == 1, "the refusal", 2 * PATIENCE)
        pushing.change(upstream, NAME, NEW)
        until(lambda: shows(server, NEW), "the end of the TTL")
        for _ in range(5):
            assert shows(server, NEW)
        assert len(pushing.seen) == 1


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(frame(b"\0\0\x30\0" + bytes(8) + b"\0\x41\0\7\1"), id="a TLV that is cut off"),
        pytest.param(
            frame(b"\0\0\x30\0" + bytes(8) + b"\0\x41" + (65_000).to_bytes(2, "big") + bytes(65_000)), id="large"
        ),
        pytest.param(frame(b"\0\0\x30\0" + bytes(8) + b"\x77\x77\0\0"), id="an unknown type"),
        pytest.param(b"\xff\xff" + bytes(100), id="a message that does not end, and the end of the connection"),
    ],
)
def test_n21_garbage_ends_the_session_and_the_next_one_makes_the_subscription_again(
    tmp_path: Path, octets: bytes
) -> None:
    pushing = PushingUpstream()
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream) as server:
        subscribe(server, pushing)

        def harm() -> None:
            channel = pushing.channel_of_last()
            pushing.subscribed.clear()
            channel.send_raw(octets)
            if octets.startswith(b"\xff"):
                channel.close()

        pushing.do(upstream, harm)
        assert shows(server, OLD)
        subscribe(server, pushing)
        pushing.change(upstream, NAME, NEW)
        until(lambda: shows(server, NEW), "the change", 1.0)


def test_n21_what_was_missed_between_two_sessions_is_fetched_with_the_second(tmp_path: Path) -> None:
    pushing = PushingUpstream()
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream) as server:
        subscribe(server, pushing)

        def lose() -> None:
            pushing.channel_of_last().reset()
            pushing.subscribed.clear()
            pushing.set(NAME, NEW)

        pushing.do(upstream, lose)
        assert shows(server, OLD)  # as with a TTL
        until(lambda: shows(server, NEW), "the second session", 5.0)


def test_n21_pushes_about_names_never_subscribed_to_are_ignored(tmp_path: Path) -> None:
    pushing = PushingUpstream()
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream) as server:
        subscribe(server, pushing)
        stranger = question_of(query("stranger.example.org A"))
        pushing.do(upstream, lambda: pushing.push(pushing.channel_of_last(), stranger))
        until(lambda: server.metric("topodns_cache_push_strays_total") >= 1, "the strays")
        assert shows(server, OLD)
        assert server.metric("topodns_cache_push_subscriptions") == 1


def test_n21_a_replica_that_is_behind_is_believed_for_a_second(tmp_path: Path) -> None:
    pushing = PushingUpstream()
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream) as server:
        subscribe(server, pushing)
        name = question_of(query(NAME))

        def change() -> None:
            pushing.pushed[name] = NEW
            pushing.push(pushing.channel_of_last(), name)

        pushing.do(upstream, change)
        until(lambda: server.ask(NAME).answer == [f"www.example.org. 1 IN A {OLD}"], "the contradiction")
        pushing.do(upstream, lambda: pushing.addresses.update({name: NEW}))
        until(lambda: shows(server, NEW), "the replica", 3.0)


def test_a_reload_with_and_without_push(tmp_path: Path) -> None:
    pushing = PushingUpstream()
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream) as server:
        subscribe(server, pushing)
        corefile = tmp_path / "Corefile"
        text = corefile.read_text()
        for number, option in enumerate(("", "push 5"), 1):
            pushing.do(upstream, pushing.subscribed.clear)
            corefile.write_text(text.replace("        push", f"        {option}"))
            server.signal(signal.SIGUSR1)
            until(partial(reloaded, server, number), "the reload")
            assert shows(server, OLD)
        subscribe(server, pushing)
        pushing.change(upstream, NAME, NEW)
        until(lambda: shows(server, NEW), "the change", 1.0)


def test_one_client_with_thousands_of_names_takes_no_subscription_of_a_name_that_others_query(tmp_path: Path) -> None:
    pushing = PushingUpstream()
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream, "push 100") as server:
        for number in range(500):
            for _ in range(2):
                server.ask(f"junk{number}.example.org A", source="127.1.0.1")
        until(lambda: pushing.subscriptions == 75, "the subscriptions of one client")
        for source in ("127.1.0.2", "127.1.0.3"):
            server.ask(NAME, source=source)
        until(lambda: question_of(query(NAME)) in list(pushing.subscribed.values()), "the subscription of others")
        assert pushing.subscriptions == 76
        assert shows(server, OLD)
        pushing.change(upstream, NAME, NEW)
        until(lambda: shows(server, NEW), "the change", 1.0)
