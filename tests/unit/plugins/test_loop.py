"""`loop`: a probe that comes back stops the forwarding, and one that does not starts it again."""

import logging
from itertools import count

import pytest

from tests.support.corefile_settings import block_problem, only_block
from tests.support.deferred_results import at_once
from tests.support.plugin_metrics import shown
from tests.support.query_builders import ask
from tests.support.query_builders import client as client_at
from tests.support.virtual_timers import VirtualTimers
from topodns.dns.message import Query, Response
from topodns.dns.name import name_text, parse_name
from topodns.dns.rrtype import RCODE_NAMES, TYPE_NAMES, Rcode, RRType
from topodns.plugins.loop import RECHECK, LoopCounts, LoopGuard
from topodns.plugins.setup import Shared
from topodns.query.deferred import Outcome
from topodns.query.plugin import Client, Dropped, Resolution


class Upstream:
    """A forward step; while it is `circular`, each query comes back to the guard from its address."""

    def __init__(self) -> None:
        self.guard: LoopGuard
        self.circular = True
        self.drops = False
        self.asked: list[str] = []

    async def __call__(self, query: Query, client: Client) -> Resolution:
        self.asked.append(f"{name_text(query.qname)} {TYPE_NAMES[query.qtype]}")
        if self.drops:
            raise Dropped("forward")
        if self.circular:
            back = self.guard(query, client_at("127.0.0.53"))
            if back is not None:
                return back
        await _there()
        return Resolution(Response(Rcode.NXDOMAIN), "forward")


def _there() -> Outcome[None]:
    outcome: Outcome[None] = Outcome()
    outcome.settle(None)
    return outcome


def guard(origin: str = ".") -> tuple[LoopGuard, Upstream, VirtualTimers]:
    upstream, timers, numbers = Upstream(), VirtualTimers(), count()
    made = LoopGuard(parse_name(origin), [upstream], timers, lambda: f"s{next(numbers)}", LoopCounts())
    upstream.guard = made
    made.start()
    return made, upstream, timers


def rcode(made: LoopGuard, name: str = "example.com.") -> str:
    resolution = at_once(made(ask(name), client_at()))
    return "passed" if resolution is None else RCODE_NAMES[resolution.response.rcode]


def test_a_probe_that_comes_back_stops_the_forwarding(caplog: pytest.LogCaptureFixture) -> None:
    made, upstream, timers = guard("example.")
    assert rcode(made) == "passed"
    with caplog.at_level(logging.ERROR):
        timers.advance(1)
    assert upstream.asked == ["s0.s1.example. HINFO"]
    assert rcode(made) == "SERVFAIL"
    assert "Loop detected for example." in caplog.text
    assert (made.counts.detected, made.counts.refused) == (1, 2)


def test_forwarding_goes_on_when_a_probe_does_not_come_back() -> None:
    made, upstream, timers = guard()
    timers.advance(1)
    timers.advance(RECHECK)
    assert rcode(made) == "SERVFAIL"
    upstream.circular = False
    timers.advance(RECHECK)
    assert rcode(made) == "passed"
    assert len(upstream.asked) == 3
    assert timers.pending == 0


def test_where_there_is_no_loop_one_probe_is_all() -> None:
    made, upstream, timers = guard()
    upstream.circular = False
    timers.advance(600)
    assert len(upstream.asked) == 1
    assert rcode(made) == "passed"


def test_a_client_without_the_name_of_the_probe_cannot_stop_the_server() -> None:
    made, upstream, timers = guard()
    upstream.circular = False
    assert at_once(made(ask("s0.s1.", RRType.HINFO), client_at())) is None  # before it was sent
    timers.advance(1)
    assert at_once(made(ask("s0.s1.", RRType.HINFO), client_at())) is None  # after it was answered
    assert rcode(made) == "passed"


def test_a_probe_that_is_dropped_is_no_loop() -> None:
    made, upstream, timers = guard()
    upstream.drops = True
    timers.advance(1)
    assert rcode(made) == "passed"


def test_a_closed_guard_sends_nothing() -> None:
    made, upstream, timers = guard()
    made.close()
    timers.advance(60)
    assert upstream.asked == []


def test_the_probe_of_a_guard_that_is_closed_meanwhile_does_not_count(caplog: pytest.LogCaptureFixture) -> None:
    timers, reply = VirtualTimers(), Outcome[None]()
    made: LoopGuard

    async def circular(query: Query, client: Client) -> Resolution:
        back = made(query, client)
        assert back is not None
        await reply
        return back

    made = LoopGuard(parse_name("."), [circular], timers, lambda: "s", LoopCounts())
    made.start()
    timers.advance(RECHECK)
    made.close()
    reply.settle(None)
    timers.advance(RECHECK)
    assert (made.looping, caplog.messages) == (False, [])


def test_loops_are_counted() -> None:
    shared = Shared()
    counts = shared.get(LoopCounts)
    counts.detected, counts.refused = 1, 30
    assert shown("loop", "topodns_loop_detected_total", shared) == {"": 1}
    assert shown("loop", "topodns_loop_refused_total", shared) == {"": 30}


def test_loop_is_only_its_name() -> None:
    assert only_block("loop").settings.get("loop")
    assert "'loop' has the arguments '5s', expected none" in block_problem("loop 5s")
