"""Names that another server block of the listener resolves."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.deferred_results import at_once
from tests.support.query_builders import ask, client
from topodns.dns.message import Query, Response
from topodns.dns.name import name_wire, parse_name
from topodns.dns.rrtype import Rcode, RRType
from topodns.dnsserver.router import Chaser, Neighbours
from topodns.query.cname import MAX_CHASE
from topodns.query.plugin import Client, Resolution, Scope

TARGET = parse_name("www.example.org")


def block(**traits: Any) -> Any:
    """A server block that answers everything, and keeps the queries with their clients in `asked`."""
    asked: list[tuple[Query, Client]] = []

    def resolve(query: Query, asker: Client) -> Resolution:
        asked.append((query, asker))
        return Resolution(Response(), "whoami")

    default = {"origin": ("org",), "scope": Scope.EVERYONE, "rotate": False}
    return SimpleNamespace(chain=SimpleNamespace(resolve=resolve), asked=asked, **{**default, **traits})


def unasked(query: Query, asker: Client) -> Resolution:
    pytest.fail("the plugins below have no such name")


def test_a_target_is_asked_for_one_step_deeper_and_in_lower_case() -> None:
    found = block()
    assert Chaser(lambda *_: found)(TARGET, RRType.AAAA, client()) is not None
    ((query, asker),) = found.asked
    assert (query.qname, query.spelling, query.qtype, asker.depth) == (TARGET, name_wire(TARGET), RRType.AAAA, 1)


def test_a_chain_of_targets_ends_in_servfail() -> None:
    found = block()
    end = Chaser(lambda *_: found)(TARGET, RRType.A, client()._replace(depth=MAX_CHASE))
    assert isinstance(end, Resolution)
    assert end.response.rcode == Rcode.SERVFAIL
    assert Chaser(lambda *_: None)(TARGET, RRType.A, client()) is None
    assert found.asked == []


def test_a_name_of_the_calling_block_goes_to_the_plugins_below() -> None:
    found, given = block(), Resolution(Response(), "forward")
    neighbours = Neighbours(lambda *_: found, [("org",)])
    assert neighbours(ask("www.example.org"), client(), lambda *_: given) is given
    assert found.asked == []


def test_a_name_of_no_block_is_refused() -> None:
    refused = at_once(Neighbours(lambda *_: None, ())(ask("www.example.org"), client(), unasked))
    assert (refused.response.rcode, refused.scope) == (Rcode.REFUSED, Scope.CLIENT)


@pytest.mark.parametrize(
    ("traits", "rotate", "scope"),
    [
        ({}, False, Scope.EVERYONE),
        ({"scope": Scope.NAMESPACE}, False, Scope.CLIENT),
        ({"rotate": True}, False, Scope.CLIENT),
        ({"rotate": True}, True, Scope.EVERYONE),
    ],
)
def test_an_answer_that_the_packet_cache_would_repeat_wrongly_is_never_kept(
    traits: dict[str, bool], rotate: bool, scope: Scope
) -> None:
    neighbours = Neighbours(lambda *_: block(**traits), (), rotate)
    assert at_once(neighbours(ask("www.example.org"), client(), unasked)).scope is scope
