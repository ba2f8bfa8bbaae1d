"""The arguments of /explain and `topodns explain`."""

from collections.abc import Mapping
from ipaddress import ip_address

import pytest

from topodns.dns.name import parse_name
from topodns.dns.rrtype import RRType
from topodns.inspect.errors import Refused
from topodns.inspect.explain import ExplainQuestion, parse_question

NAME = "hard.shop.svc.cluster.local"
QNAME = parse_name(NAME)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"client": "10.0.0.1"}, ExplainQuestion(QNAME, RRType.A, ip_address("10.0.0.1").packed, "")),
        ({"client": "2001:db8::1"}, ExplainQuestion(QNAME, RRType.A, ip_address("2001:db8::1").packed, "")),
        ({"node": "one", "type": "SRV"}, ExplainQuestion(QNAME, RRType.SRV, None, "one")),
        ({"node": "one", "client": "", "type": "TYPE65"}, ExplainQuestion(QNAME, 65, None, "one")),
    ],
    ids=str,
)
def test_a_question_is_a_name_a_type_and_a_client(arguments: Mapping[str, str], expected: ExplainQuestion) -> None:
    assert parse_question({"name": NAME, **arguments}) == expected


FAULTS = [
    ("neither client nor node", {}, "found both or none of client and node, expected one of them"),
    ("both", {"client": "10.0.0.1", "node": "one"}, "found both or none of client and node, expected one of them"),
    ("no address", {"client": "one"}, "'one' is no IP address"),
    ("no name", {"client": "10.0.0.1", "name": ""}, "no name is given"),
    ("a bad name", {"client": "10.0.0.1", "name": "a..b"}, ""),
    ("an unknown type", {"client": "10.0.0.1", "type": "FOO"}, "'FOO' is no type; expected one such as A"),
]


@pytest.mark.parametrize(("arguments", "why"), [case[1:] for case in FAULTS], ids=[case[0] for case in FAULTS])
def test_wrong_arguments_are_refused_with_what_was_found(arguments: Mapping[str, str], why: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_question({"name": NAME, **arguments})
    assert str(refused.value).startswith(why)
