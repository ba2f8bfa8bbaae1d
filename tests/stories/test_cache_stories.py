"""The cache over real time and a real upstream: refreshed before a client waits, stale when nothing better is there."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.dns_messages import EDE, Opt, Reply
from tests.support.faulty_upstream import ANSWER, BadUpstream, bad_upstream
from tests.support.held_upstream import Held, release
from tests.support.reply_faults import alias_of_itself, aliases_in_a_circle, by_transport, servfail
from tests.support.server_process import Server, serving, until
from tests.support.upstream_faults import Lie, answers, reply_to, says, silent, truncated

COREFILE = """
.:0 {{
    bind HERE
    cache 30 {{
        {options}
    }}
    forward . 127.0.0.1:{port}
}}
"""
NAME = "www.example.org A"
NEWS = "192.0.2.2"
SERVFAIL_TTL = 5  # seconds, CoreDNS's


@contextmanager
def caching(directory: Path, upstream: BadUpstream, *options: str) -> Iterator[Server]:
    text = COREFILE.format(options="\n        ".join(options), port=upstream.port)
    with serving(directory, text) as server:
        yield server


def asked(upstream: BadUpstream) -> int:
    """How often for the name, probes aside."""
    return sum(b"\3www" in each.message for each in tuple(upstream.asked))


def is_stale(reply: Reply) -> bool:
    return (reply.options or {}).get(EDE, b"")[:2] == b"\0\3"


def turns_stale(server: Server) -> bool:
    return is_stale(server.ask(NAME, opt=Opt()))


def shows(server: Server, address: str) -> bool:
    return server.ask(NAME).data == [address]


def test_a_dead_upstream_does_not_delay_cached_answers(tmp_path: Path) -> None:
    with (
        bad_upstream(answers) as upstream,
        caching(tmp_path, upstream, "success 9984 1 1", "serve_stale 1h immediate") as server,
    ):
        assert server.ask(NAME).answer == [f"www.example.org. 1 IN A {ANSWER}"]
        upstream.behaviour = silent
        until(partial(turns_stale, server), "the end of the TTL")
        for tcp in (False, True):
            reply = server.ask(NAME, opt=Opt(), tcp=tcp)
            assert reply.answer == [f"www.example.org. 30 IN A {ANSWER}"]
            assert is_stale(reply)
        until(lambda: asked(upstream) > 1, "the refresh")
        assert is_stale(server.ask(NAME, opt=Opt()))
        assert asked(upstream) == 1 + 1  # one, for all of them, and under way


def test_a_refresh_that_failed_is_not_tried_again_at_once(tmp_path: Path) -> None:
    with (
        bad_upstream(answers) as upstream,
        caching(tmp_path, upstream, "success 9984 1 1", "serve_stale 1h verify") as server,
    ):
        assert shows(server, ANSWER)
        upstream.behaviour = says(servfail)
        until(partial(turns_stale, server), "the end of the TTL")
        for _ in range(5):
            assert turns_stale(server)
        assert asked(upstream) == 2


def test_an_upstream_that_answers_again_within_the_time_to_verify_is_heard(tmp_path: Path) -> None:
    with (
        bad_upstream(answers) as upstream,
        caching(tmp_path, upstream, "success 9984 1 1", "serve_stale 1h verify") as server,
    ):
        assert shows(server, ANSWER)
        upstream.behaviour = says(partial(reply_to, address=NEWS))
        until(partial(shows, server, NEWS), "the news")
        assert asked(upstream) == 2
        assert not turns_stale(server)


def test_a_popular_name_is_refreshed_before_anybody_has_to_wait(tmp_path: Path) -> None:
    held = Held(NEWS)
    with (
        bad_upstream(answers) as upstream,
        caching(tmp_path, upstream, "success 9984 4 4", "prefetch 2 1m 50%") as server,
    ):
        assert shows(server, ANSWER)
        upstream.behaviour = held
        until(lambda: shows(server, ANSWER) and asked(upstream) == 2, "the refresh")
        (line,) = server.ask(NAME).answer  # while it is under way
        assert line in (f"www.example.org. {ttl} IN A {ANSWER}" for ttl in (1, 2))
        release(upstream)
        until(partial(shows, server, NEWS), "the news")
        assert asked(upstream) == 2


def test_a_failure_is_kept_for_five_seconds_and_no_longer(tmp_path: Path) -> None:
    with bad_upstream(says(servfail)) as upstream, caching(tmp_path, upstream) as server:
        began = time.monotonic()
        assert server.ask(NAME).rcode == "SERVFAIL"
        upstream.behaviour = answers
        assert server.ask(NAME).rcode == server.ask(NAME, tcp=True).rcode == "SERVFAIL"
        assert asked(upstream) == 1
        until(partial(shows, server, ANSWER), "the end of the failure")
        assert time.monotonic() - began >= SERVFAIL_TTL
        assert asked(upstream) == 2


def test_an_answer_truncated_over_udp_is_fetched_whole_over_tcp_and_then_cached_for_all(tmp_path: Path) -> None:
    with (
        bad_upstream(by_transport(says(truncated), answers)) as upstream,
        caching(tmp_path, upstream) as server,
    ):
        for _ in range(2):
            reply = server.ask(NAME)
            assert ("tc" in reply.flag_names, reply.answer) == (True, [])
        assert server.ask(NAME, tcp=True).data == [ANSWER]
        assert server.ask(NAME).data == [ANSWER]
        assert [each.transport for each in upstream.asked] == ["udp", "udp", "tcp"]


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
@pytest.mark.parametrize("reply", [alias_of_itself, aliases_in_a_circle, truncated])
def test_a_reply_that_is_no_answer_is_not_cached(tmp_path: Path, reply: Lie, tcp: bool) -> None:
    with bad_upstream(says(reply)) as upstream, caching(tmp_path, upstream) as server:
        for times in (1, 2, 3):
            server.ask(NAME, tcp=tcp)
            assert asked(upstream) == times
