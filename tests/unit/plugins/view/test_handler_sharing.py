"""Ready-made answers of server blocks that views set apart: whom they may be given to."""

from dataclasses import replace

import pytest

from tests.support.deferred_results import at_once
from tests.support.dns_messages import Reply
from tests.support.in_memory_server import Addresses, block, dig, handler
from tests.support.model_builders import packed
from topodns.dnsserver.handler import Handler
from topodns.plugins.view.handler import ViewFilter
from topodns.plugins.view.settings import View


def split(expression: str) -> Handler:
    """One address from the block whose view this is, three from the one without."""
    view = ViewFilter(View("v", (expression,)), "")
    return handler(replace(block(".", Addresses(1)), view=view), block(".", Addresses(3)))


def addresses(answering: Handler, question: str, client: str) -> int:
    reply = at_once(answering.answer(dig(question), packed(client), 40212))
    assert reply is not None
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
