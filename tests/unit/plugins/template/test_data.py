"""The data of a query that templates can use, under CoreDNS's names."""

import pytest

from tests.support.query_builders import ask, client
from topodns.dns.message import Flag
from topodns.dns.rrtype import RRType
from topodns.plugins.template.data import FIELDS, MESSAGE, QUESTION, Matched, class_text, template_data, type_text
from topodns.plugins.template.engine.values import Struct

MATCHED = Matched("example.", "IN", "A", "www.example.", r"(\w+)\.example\.", ("www.example.", "www"), {"1": "www"})


def test_every_field_that_templates_may_name_is_there() -> None:
    data = template_data(MATCHED, ask("WWW.example"), client("2001:db8::1"))
    assert data.fields.keys() == FIELDS.keys()
    question, message = data.fields["Question"], data.fields["Message"]
    assert isinstance(question, Struct)
    assert isinstance(message, Struct)
    assert set(question.fields) == QUESTION
    assert set(message.fields) == MESSAGE
    assert (data.fields["Zone"], data.fields["Name"], data.fields["Remote"]) == (
        "example.",
        "www.example.",
        "2001:db8::1",
    )


def test_the_message_is_the_client_s_as_spelled() -> None:
    data = template_data(MATCHED, ask("WWW.example", RRType.AAAA, flags=Flag.RD | Flag.CD | 4 << 11), client())
    question, message = data.fields["Question"], data.fields["Message"]
    assert question == Struct({"Name": "WWW.example.", "Qtype": 28, "Qclass": 1})
    assert isinstance(message, Struct)
    flags = {name for name, value in message.fields.items() if value is True}
    assert (flags, message.fields["Opcode"]) == ({"RecursionDesired", "CheckingDisabled"}, 4)


@pytest.mark.parametrize(
    ("qclass", "of_directive", "text"), [(1, 1, "IN"), (3, 255, "CH"), (255, 1, "IN"), (77, 1, "")]
)
def test_the_class_is_the_query_s_unless_it_asks_for_any(qclass: int, of_directive: int, text: str) -> None:
    assert class_text(qclass, of_directive) == text


@pytest.mark.parametrize(("rtype", "text"), [(1, "A"), (255, "ANY"), (44, "SSHFP"), (65534, "")])
def test_a_type_without_a_mnemonic_has_no_text(rtype: int, text: str) -> None:
    assert type_text(rtype) == text
