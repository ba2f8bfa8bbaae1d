"""Replies: their size and contents, and their counts, cache entries and log lines, also of deferred answers."""

import logging
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from tests.support.deferred_results import at_once
from tests.support.dns_messages import DO, EDE, KEEPALIVE, Opt, Reply
from tests.support.in_memory_server import CLIENT, PORT, Addresses, block, counted, dig, handler, ready_made, send
from tests.support.virtual_timers import VirtualTimers
from topodns.dependency import EVERYTHING, Fact, address_fact, namespace_fact, service_fact
from topodns.dns.message import Ede, Query, Response, RRset
from topodns.dns.rrtype import Rcode, RRType
from topodns.dnsserver.handler import Handler
from topodns.dnsserver.packet_cache.table import PacketCache
from topodns.plugins.errors import ErrorLog, Errors
from topodns.plugins.whoami import whoami
from topodns.query.counters import DURATION_BUCKETS, CacheHit, LocalhostAnswer, ReplyKind, size_bucket
from topodns.query.deferred import Outcome
from topodns.query.plugin import Client, Dropped, FellThrough, Resolution, Scope, Step


def fails(query: Query, client: Client) -> Resolution:
    raise ZeroDivisionError("as bugs do")


def drops(query: Query, client: Client) -> Resolution:
    raise Dropped("acl")


@pytest.mark.parametrize(
    ("payload_size", "opt", "size"),
    [
        (1232, None, 512),
        (4096, None, 512),
        (1232, Opt(0), 512),
        (1232, Opt(511), 512),
        (1232, Opt(512), 512),
        (1232, Opt(513), 513),
        (1232, Opt(1232), 1232),
        (1232, Opt(1233), 1232),
        (1232, Opt(65535), 1232),
        (4096, Opt(65535), 4096),
        (512, Opt(65535), 512),
    ],
)
def test_over_udp_a_reply_has_at_most_the_octets_that_both_sides_take(
    payload_size: int, opt: Opt | None, size: int
) -> None:
    reply = send(handler(block(".", Addresses(5000), payload_size=payload_size)), dig("example. A", opt))
    assert size - 16 < len(reply.wire) <= size
    assert "tc" in reply.flag_names
    if opt is not None:
        assert reply.edns_size == payload_size


@pytest.mark.parametrize("opt", [None, Opt(512)])
def test_over_tcp_a_reply_may_fill_a_message(opt: Opt | None) -> None:
    answering = handler(block(".", Addresses(5000)), transport="tcp")
    reply = send(answering, dig("example. A", opt))
    assert 65535 - 16 < len(reply.wire) <= 65535
    assert "tc" in reply.flag_names
    assert len(send(handler(block(".", Addresses(4000)), transport="tcp"), dig("example. A", opt)).answer) == 4000


@pytest.mark.parametrize(
    ("transport", "options", "got"),
    [
        ("tcp", [(KEEPALIVE, b"")], {KEEPALIVE: (100).to_bytes(2, "big")}),
        ("tcp", [(10, b"8 octets"), (KEEPALIVE, b"")], {KEEPALIVE: (100).to_bytes(2, "big")}),
        ("tcp", [], {}),
        ("udp", [(KEEPALIVE, b"")], {}),
    ],
)
def test_keepalive_is_sent_over_tcp_to_clients_that_ask_for_it(
    transport: str, options: list[tuple[int, bytes]], got: dict[int, bytes]
) -> None:
    reply = send(handler(block(".", whoami), transport=transport), dig("example. A", Opt(options=options)))
    assert reply.options == got


def sizes_in(question: bytes, more: int) -> tuple[int, int]:
    """The buckets of a query, and of a reply with so many octets more."""
    return size_bucket(len(question)), size_bucket(len(question) + more)


def test_every_answer_is_counted_by_kind_with_its_duration() -> None:
    answering = handler(block("cluster.local.", Addresses()), block(".", whoami))
    plain, secure = dig("a.cluster.local. A"), dig("a.cluster.local. TYPE1000", Opt(flags=DO))
    for data in (plain, plain, secure, dig("example. AAAA")):
        send(answering, data)
    assert counted(answering) == {
        ReplyKind("cluster.local.", "A", "NOERROR", "kubernetes", False, "", "", *sizes_in(plain, 16)): 2,
        ReplyKind("cluster.local.", "other", "NOERROR", "kubernetes", True, "", "", *sizes_in(secure, 16)): 1,
        ReplyKind(".", "AAAA", "NOERROR", "whoami", False, "", "", size_bucket(25), size_bucket(25 + 16 + 24)): 1,
    }
    # The clock goes on by a second between start and end of each.
    bucket = next(at for at, bound in enumerate(DURATION_BUCKETS) if bound >= 1.0)
    asked, answered = (2 * len(plain) + len(secure), 2 * len(plain) + len(secure) + 3 * 16)
    assert answering.socket_counters.octets == {
        ("cluster.local.", ""): [asked, answered],
        (".", ""): [25, 25 + 16 + 24],
    }
    durations = {
        place: (found.sum, found.counts[bucket]) for place, found in answering.socket_counters.durations.items()
    }
    assert durations == {("cluster.local.", ""): (3.0, 3), (".", ""): (1.0, 1)}


def test_the_detail_of_an_answer_is_counted() -> None:
    def localhost(query: Query, client: Client) -> Resolution:
        return Resolution(Response(), "local", detail=LocalhostAnswer())

    answering = handler(block(".", localhost))
    send(answering, dig("localhost.example. A"))
    assert [kind.detail for kind in counted(answering)] == [LocalhostAnswer()]


def test_the_third_asking_over_tcp_is_answered_from_the_table_and_counted_alike() -> None:
    step = Addresses()
    answering = handler(block(".", step), transport="tcp")
    replies = [send(answering, dig("example. A", ident=ident)).wire[2:] for ident in range(5)]
    assert len(set(replies)) == 1
    assert step.asked == 2
    assert list(counted(answering).values()) == [5]


@pytest.mark.parametrize(
    ("step", "kept"),
    [(Addresses(), 1), (Addresses(scope=Scope.NODE), 1), (Addresses(scope=Scope.CLIENT), 0), (whoami, 0), (fails, 0)],
    ids=["for everyone", "for the node", "for this client", "whoami", "a bug"],
)
def test_answers_are_cached_for_the_clients_of_their_scope(step: Step, kept: int) -> None:
    answering = handler(block(".", step))
    for _ in range(3):
        send(answering, dig("example. A"))
    assert len(answering.table) == kept


def test_a_refusal_by_the_server_itself_is_not_cached() -> None:
    answering = handler(block("cluster.local.", Addresses()))
    for _ in range(3):
        for question, opt in (
            ("example. A", None),
            ("cluster.local. AXFR", None),
            ("cluster.local. A", Opt(version=1)),
        ):
            send(answering, dig(question, opt))
    assert len(answering.table) == 0


@pytest.mark.parametrize("logged", [True, False])
def test_an_answer_that_is_logged_comes_through_the_steps_each_time(logged: bool) -> None:
    lines: list[tuple[object, ...]] = []

    def log(*exchange: object) -> bool:
        lines.append(exchange)
        return logged

    step = Addresses()
    answering = handler(block(".", step, log=log), transport="tcp")
    for _ in range(4):
        send(answering, dig("example. A"))
    assert (step.asked, len(lines)) == ((4, 4) if logged else (2, 2))


def test_a_query_log_gets_the_exchange_as_it_was_sent() -> None:
    seen: list[tuple[Query, Client, Resolution | None, bytes | None, float]] = []

    def log(*exchange: object) -> bool:
        seen.append(exchange)  # type: ignore[arg-type]  # QueryLog's five
        return True

    answering = handler(block("example.", drops, log=log), block(".", whoami, log=log))
    wire = answering.answer(dig("a. A"), CLIENT, PORT)
    answering.answer(dig("b.example. A"), CLIENT, PORT)
    asked, asking, resolution, reply, seconds = seen[0]
    assert (asked.qname, asking, reply, seconds) == (("a",), Client(CLIENT, PORT, "udp", 53, limit=512), wire, 1.0)
    assert resolution is not None
    assert resolution.plugin == "whoami"
    assert seen[1][2:4] == (None, None)


def servfails(query: Query, client: Client) -> Resolution:
    return Resolution(Response(Rcode.SERVFAIL, ede=Ede(14, "not yet")), "kubernetes")


@pytest.mark.parametrize(("errors", "logged"), [(True, ["plugin/errors: 2 example. A: not yet"]), (False, [])])
def test_errors_logs_each_servfail(errors: bool, logged: list[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    log = ErrorLog(Errors(), VirtualTimers()) if errors else None
    reply = send(handler(block(".", servfails, errors=log)), dig("example. A", Opt()))
    assert (reply.rcode, list(reply.options or {})) == ("SERVFAIL", [EDE])
    assert [record.getMessage() for record in caplog.records] == logged


def upstream_servfails(query: Query, client: Client) -> Resolution:
    return Resolution(Response(Rcode.SERVFAIL), "forward")


@pytest.mark.parametrize(
    ("step", "line"),
    [
        (upstream_servfails, "plugin/errors: 2 example. A: forward: the answer is SERVFAIL"),
        (fails, "plugin/errors: 2 example. A: a bug, with its traceback in the log"),
    ],
)
def test_errors_names_the_plugin_of_a_servfail_without_a_reason(
    step: Step, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    send(handler(block(".", step, errors=ErrorLog(Errors(), VirtualTimers()))), dig("example. A"))
    assert caplog.records[-1].getMessage() == line


def fails_from_the_cache(query: Query, client: Client) -> Resolution:
    return Resolution(Response(Rcode.SERVFAIL), "cache", Scope.CLIENT, detail=CacheHit("denial", "."))


def test_errors_says_nothing_of_a_failure_that_the_cache_repeats(caplog: pytest.LogCaptureFixture) -> None:
    answering = handler(block(".", fails_from_the_cache, errors=ErrorLog(Errors(), VirtualTimers())))
    assert send(answering, dig("example. A")).rcode == "SERVFAIL"
    assert caplog.records == []


def test_answers_and_silence_are_counted_under_the_view_of_their_block() -> None:
    inside = replace(block("example.", whoami), view_name="inside")
    answering = handler(inside, replace(block("silent.", drops), view_name="outside"), block("plain.", whoami))
    for name in ("a.example.", "b.silent.", "c.plain.", "d.nowhere."):
        answering.answer(dig(f"{name} A"), CLIENT, PORT)
    views = {kind.origin: kind.view for kind in counted(answering)}
    assert views == {"example.": "inside", "silent.": "outside", "plain.": "", "dropped": ""}


def test_a_reload_keeps_the_socket_and_its_counts() -> None:
    old = handler(block(".", whoami), transport="tcp")
    send(old, dig("example. A"))
    table = PacketCache(lambda address: "", Random(1), lambda: 0.0)
    new = old.succeeded_by(handler(block("cluster.local.", whoami)).blocks, table)
    assert send(new, dig("example. A")).rcode == "REFUSED"
    assert (new.socket_counters, new.local_port) == (old.socket_counters, old.local_port)
    assert len(send(new, dig("cluster.local. A")).wire) > 12


QUERY = dig("web.shop.svc.cluster.local. A")
OLD, NEW = b"\x0a\0\0\1", b"\x0a\0\0\2"
WEB = service_fact("shop", "web")


def answer_of(rdata: bytes) -> Response:
    return Response(answer=(RRset(b"", RRType.A, 5, (rdata,)),))


class Story:
    """Two steps: the first answers with NEW once it has a record, the second with OLD after a wait for `arrival`."""

    def __init__(self, scope: Scope = Scope.EVERYONE) -> None:
        self.has_record = False
        self.arrival: Outcome[None] = Outcome()
        self._scope = scope
        self.handler: Handler = handler(block(".", self.first, self.second))

    def first(self, query: Query, client: Client) -> Resolution | FellThrough:
        return Resolution(answer_of(NEW), "hosts", facts=(WEB,)) if self.has_record else FellThrough((WEB,))

    async def second(self, query: Query, client: Client) -> Resolution:
        await self.arrival
        return Resolution(answer_of(OLD), "kubernetes", self._scope)

    def ask(self, meanwhile: Callable[[], None] = lambda: None) -> str:
        """The address in the reply; `meanwhile` is called while the answer waits."""
        self.arrival = Outcome()
        replied = self.handler.answer(QUERY, CLIENT, PORT)
        meanwhile()
        self.arrival.settle(None)
        reply = at_once(replied)
        return Reply(reply).answer[0]

    def is_ready(self) -> bool:
        return ready_made(self.handler.table, QUERY, CLIENT) is not None


@pytest.mark.parametrize("scope", [Scope.EVERYONE, Scope.NODE])
def test_an_answer_that_waited_is_cached_if_nothing_changed_meanwhile(scope: Scope) -> None:
    story = Story(scope)
    story.ask()
    assert not story.is_ready()
    story.ask()
    assert story.is_ready()
    story.handler.table.forget([WEB])
    assert not story.is_ready()


@pytest.mark.parametrize("fact", [WEB, address_fact(CLIENT), namespace_fact("other"), EVERYTHING])
@pytest.mark.parametrize("scope", [Scope.EVERYONE, Scope.NODE])
def test_an_answer_that_waited_while_the_cluster_changed_is_not_cached(fact: Fact, scope: Scope) -> None:
    story = Story(scope)
    story.ask()
    story.ask(meanwhile=lambda: story.handler.table.forget([fact]))
    assert not story.is_ready()
    story.ask()
    assert story.is_ready()


def test_a_record_that_appears_while_an_answer_waits_is_in_the_next_answer() -> None:
    story = Story()
    story.ask()

    def appear() -> None:
        story.has_record = True
        story.handler.table.forget([WEB])

    waited = story.ask(meanwhile=appear)
    assert not story.is_ready()
    assert story.ask() != waited


def test_a_query_that_is_dropped_after_a_wait_gets_no_reply() -> None:
    arrival: Outcome[None] = Outcome()

    async def drops(query: Query, client: Client) -> Resolution:
        await arrival
        raise Dropped("forward")

    answering = handler(block(".", drops))
    replied = answering.answer(QUERY, CLIENT, PORT)
    assert isinstance(replied, Outcome)
    replies: list[bytes | None] = []
    replied.then(replies.append)
    answering.table.forget([WEB])
    arrival.settle(None)
    assert replies == [None]
