"""Which block answers, and ready-made answers of blocks that views set apart: whom they may be given to."""

from dataclasses import replace

import pytest

from tests.support.deferred_results import at_once
from tests.support.dns_messages import Reply
from tests.support.in_memory_server import Addresses, block, dig, handler
from tests.support.model_builders import packed
from topodns.dns.wire_reader import read_query
from topodns.dnsserver.handler import Handler
from topodns.plugins.view.handler import ViewFilter
from topodns.plugins.view.settings import View
from topodns.query.plugin import Client, Scope

CLIENT = Client(packed("10.244.1.7"), 40212, "udp")


def takes(expressions: tuple[str, ...], listens_on: str = "") -> bool:
    view = ViewFilter(View("v", expressions), listens_on)
    return view(read_query(dig("www.example.com. A")), CLIENT)


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ((), True),
        (("type() == 'A'",), True),
        (("type() == 'A'", "name() == 'www.example.com.'"), True),
        (("type() == 'A'", "name() == 'example.com.'"), False),
        (("name() == 'example.com.'", "type() == 'A'"), False),
        (("type() == 'A'", "not incidr('', server_ip())"), False),
    ],
)
def test_a_view_takes_the_queries_that_all_its_expressions_are_true_of(
    expressions: tuple[str, ...], expected: bool
) -> None:
    assert takes(expressions) is expected


@pytest.mark.parametrize(
    ("listens_on", "server_ip"), [("192.0.2.53", "192.0.2.53"), ("2001:db8::53", "2001:db8::53"), ("", "::")]
)
def test_the_servers_address_is_the_one_it_is_bound_to(listens_on: str, server_ip: str) -> None:
    assert takes((f"server_ip() == '{server_ip}'",), listens_on)


def test_a_view_rests_on_the_client_where_one_expression_does() -> None:
    assert ViewFilter(View("v", ("type() == 'A'", "port() == '1'")), "").scope is Scope.CLIENT
    assert ViewFilter(View("v", ("type() == 'A'",)), "").scope is Scope.EVERYONE
    assert ViewFilter(View("v"), "").scope is Scope.EVERYONE


def split(expression: str) -> Handler:
    """One address from the block whose view this is, three from the one without."""
    view = ViewFilter(View("v", (expression,)), "")
    return handler(replace(block(".", Addresses(1)), view=view), block(".", Addresses(3)))


def addresses(answering: Handler, question: str, client: str) -> int:
    reply = at_once(answering.answer(dig(question), packed(client), 40212))
    return len(Reply(reply).answer)


@pytest.mark.parametrize("clients", [("10.0.0.1", "192.0.2.1"), ("192.0.2.1", "10.0.0.1")])
def test_an_answer_chosen_by_client_is_not_given_to_another(clients: tuple[str, str]) -> None:
    answering = split("incidr(client_ip(), '10.0.0.0/8')")
    found = {client: addresses(answering, "www.example. A", client) for client in clients * 2}
    assert found == {"10.0.0.1": 1, "192.0.2.1": 3}
    assert len(answering.table) == 0


def test_an_answer_chosen_by_the_message_is_kept_for_the_same_message() -> None:
    answering = split("name() == 'www.example.'")
    for client in ("10.0.0.1", "192.0.2.1"):  # kept when asked again
        assert addresses(answering, "www.example. A", client) == 1
        assert addresses(answering, "other.example. A", client) == 3
    assert len(answering.table) == 2
