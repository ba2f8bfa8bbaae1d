"""DNS Push Notifications from an upstream to a `cache`: a change is in the next answer, and faults leave the TTL.

The upstream is `tests.support.push_upstream`; tests/stories/test_push_node_cache.py has topodns as the upstream.
"""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.dns_messages import query
from tests.support.faulty_upstream import BadUpstream, bad_upstream
from tests.support.push_upstream import (
    OnDso,
    PushingUpstream,
    closes_the_connection,
    formerr_as_a_query,
    not_implemented,
    says_nothing,
)
from tests.support.server_process import METRICS, Server, open_udp, serving, until
from tests.support.upstream_faults import question_of
from topodns.dns.push_messages import ALL_REMOVED, PushChange, write_push
from topodns.dns.rrtype import RRClass, RRType
from topodns.dns.tcp_framing import frame

TTL = 30  # seconds
SOON = 20.0  # seconds: less than the TTL, after which a change is seen without a push, too
COREFILE = """
.:0 {{
    bind HERE
    prometheus HERE:METRICS
    cache {ttl} {{
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
    text = COREFILE.format(options="\n        ".join(options), port=upstream.port, ttl=TTL).replace(
        "METRICS", str(METRICS)
    )
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
            until(partial(shows, server, address), "the change", SOON)
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


@pytest.mark.parametrize("fault", [not_implemented, formerr_as_a_query, says_nothing])
def test_n21_an_upstream_without_dso_answers_queries_and_is_asked_for_a_session_once(
    tmp_path: Path, fault: OnDso
) -> None:
    pushing = PushingUpstream()
    pushing.on_dso = fault
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream, "success 9984 1 1") as server:
        refused = "topodns_cache_push_sessions_ended_total"
        until(lambda: shows(server, OLD) and server.metric(refused, reason="refused") == 1, "the refusal")
        pushing.change(upstream, NAME, NEW)
        until(lambda: shows(server, NEW), "the end of the TTL")
        for _ in range(5):
            assert shows(server, NEW)
        assert len(pushing.seen) == 1


def test_n21_a_session_whose_connection_closes_at_once_is_tried_again_soon(tmp_path: Path) -> None:
    """As of a replica that ends: the next one may push."""
    pushing = PushingUpstream()
    pushing.on_dso = closes_the_connection
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream) as server:
        failed = "topodns_cache_push_sessions_ended_total"
        until(lambda: shows(server, OLD) and server.metric(failed, reason="failed") >= 1, "the failure")
        pushing.on_dso = None
        subscribe(server, pushing)
        pushing.change(upstream, NAME, NEW)
        until(lambda: shows(server, NEW), "the change", SOON)
        assert server.metric(failed, reason="refused") == 0


def test_n21_an_upstream_that_falls_silent_leaves_names_their_ttl_within_a_keepalive_interval(tmp_path: Path) -> None:
    """Neither FIN nor RST: the connections stay open, and nothing is answered any more but queries."""
    pushing = PushingUpstream(keepalive=10_000)
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream, "success 9984 3 1") as server:
        subscribe(server, pushing)
        pushing.on_dso = says_nothing
        pushing.do(upstream, lambda: pushing.addresses.update({question_of(query(NAME)): NEW}))
        until(lambda: shows(server, NEW), "the end of the TTL")
        ended = "topodns_cache_push_sessions_ended_total"
        until(lambda: server.metric(ended, reason="lost") == 1, "the end of the session")
        assert server.metric("topodns_cache_push_subscriptions") == 0


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
        until(lambda: shows(server, NEW), "the change", SOON)


def test_n21_what_was_missed_between_two_sessions_is_fetched_with_the_second(tmp_path: Path) -> None:
    pushing = PushingUpstream()
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream) as server:
        subscribe(server, pushing)

        def lose() -> None:
            pushing.channel_of_last().reset()
            pushing.subscribed.clear()
            pushing.set(NAME, NEW)

        pushing.do(upstream, lose)
        until(lambda: shows(server, NEW), "the second session", SOON)


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
        until(lambda: shows(server, NEW), "the replica", SOON)


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
        until(lambda: shows(server, NEW), "the change", SOON)


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
        until(lambda: shows(server, NEW), "the change", SOON)


def answers(server: Server, names: list[str]) -> list[str]:
    """The address of each name, of many queries at a time."""
    found = []
    with open_udp((server.address, server.port), "127.1.0.9") as sock:
        for first in range(0, len(names), 50):
            some = names[first : first + 50]
            for name in some:
                sock.send(query(name))
            found += [socket.inet_ntoa(sock.recv(512)[-4:]) for _ in some]
    return found


def test_three_thousand_names_that_all_change_are_right_soon_and_take_little_memory(tmp_path: Path) -> None:
    """Over one session; with TTLs alone it would take 30 s."""
    names = [f"n{number}.example.org A" for number in range(3000)]
    pushing = PushingUpstream()
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream) as server:
        assert set(answers(server, names)) == {OLD}
        before = server.resident_bytes()

        def subscribed() -> bool:
            answers(server, names)
            return pushing.subscriptions == len(names)

        until(subscribed, "the subscriptions")
        until(lambda: server.metric("topodns_cache_push_subscriptions") == len(names), "their responses")
        for address in (NEW, OLD, NEW):
            answers(server, names)
            pushing.change_all(upstream, address)
            until(partial(all_show, server, names, address), "the changes", SOON)
        assert server.metric("topodns_cache_push_sessions_ended_total") == 0
        assert server.resident_bytes() - before < 12 << 20


def all_show(server: Server, names: list[str], address: str) -> bool:
    return set(answers(server, names)) == {address}


def test_n21_an_upstream_that_pushes_without_end_loses_its_session_and_names_keep_their_ttl(tmp_path: Path) -> None:
    """Removals of CNAMEs, which concern subscriptions of every type."""
    pushing = PushingUpstream()
    with bad_upstream(pushing) as upstream, caching(tmp_path, upstream) as server:
        subscribe(server, pushing)
        name = question_of(query(NAME))[:-4]
        octets = write_push([PushChange(name, RRType.CNAME, RRClass.IN, ALL_REMOVED)] * 1300)[0]
        ended = "topodns_cache_push_sessions_ended_total"

        def flood() -> None:
            channel = pushing.channel_of_last()
            for _ in range(1000):
                channel.send(octets)

        pushing.do(upstream, flood)
        until(lambda: server.metric(ended, reason="lost") == 1, "the end of the session")
        assert shows(server, OLD)
        subscribe(server, pushing, 2)
        pushing.change(upstream, NAME, NEW)
        until(lambda: shows(server, NEW), "the change", SOON)
