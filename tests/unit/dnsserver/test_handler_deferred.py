"""Deferred answers: which of them the packet cache keeps."""

from collections.abc import Callable

import pytest

from tests.support.deferred_results import at_once
from tests.support.dns_messages import Reply
from tests.support.in_memory_server import CLIENT, PORT, block, dig, handler, ready_made
from topodns.dependency import EVERYTHING, Fact, address_fact, namespace_fact, service_fact
from topodns.dns.message import Query, Response, RRset
from topodns.dns.rrtype import RRType
from topodns.dnsserver.handler import Handler
from topodns.query.deferred import Outcome
from topodns.query.plugin import Client, Dropped, FellThrough, Resolution, Scope

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
        assert reply is not None
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
