"""The keys of packet cache entries: which queries have one, and which queries share it."""

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from tests.support.dns_messages import ECS, Opt
from tests.support.in_memory_server import dig
from tests.support.query_variants import COOKIE, messages, with_options
from topodns.dns.message import Option
from topodns.dns.rrtype import members
from topodns.dns.wire_reader import WireError, read_query
from topodns.dnsserver.packet_cache.table import key_of, name_in, plain_form


def key(data: bytes, has_variants: bool = True) -> bytes | None:
    return key_of(data[2:], read_query(data), has_variants)


@pytest.mark.parametrize("has_variants", [True, False])
@pytest.mark.parametrize("plain", [dig("web.example. A"), dig("web.example. A", Opt()), dig(". NS")])
def test_the_key_of_a_plain_query_is_the_message_without_its_id(plain: bytes, has_variants: bool) -> None:
    assert key(plain, has_variants) == plain[2:]


@pytest.mark.parametrize(
    ("variant", "plain"),
    [
        (dig("WEB.example. A"), dig("web.example. A")),
        (dig("WEB.example. TYPE65"), dig("web.example. TYPE65")),
        (with_options((COOKIE, b"8 octets")), dig("web.example. A", Opt())),
        (with_options((COOKIE, b"8 octets"), name="WEB.example. A"), dig("web.example. A", Opt())),
    ],
)
def test_the_key_of_a_variant_is_the_plain_query_where_variants_are_allowed(variant: bytes, plain: bytes) -> None:
    assert key(variant) == plain[2:]
    assert key(variant, has_variants=False) is None


def test_a_query_with_an_option_that_is_read_here_has_no_key() -> None:
    assert key(with_options((ECS, bytes((0, 1, 0, 0))))) is None


@pytest.mark.parametrize("label", [b"\4a\0bc", b"\4A\0BC"])
def test_a_variant_of_a_name_with_a_zero_octet_in_a_label_has_no_key(label: bytes) -> None:
    assert key(with_options((COOKIE, b"8 octets"), name="abcd.example. A").replace(b"\4abcd", label)) is None


@pytest.mark.parametrize("data", [dig("WEB.example. A"), with_options((COOKIE, b"8 octets"), name="WEB.example. A")])
def test_the_name_of_a_variant_keeps_its_spelling(data: bytes) -> None:
    plain = key(data)
    assert plain is not None
    assert name_in(data[2:], plain) == b"\3WEB\7example\0"


@pytest.mark.parametrize("option", set(members(Option).values()) - {Option.COOKIE})
def test_an_option_that_has_a_name_here_is_read_here(option: int) -> None:
    assert plain_form(with_options((option, b""))[2:]) is None


@hypothesis_settings(max_examples=80, deadline=None)
@given(messages(), messages())
def test_messages_with_the_same_plain_form_ask_the_same(data: bytes, other: bytes) -> None:
    try:
        query = read_query(other)
    except WireError:
        return
    key = plain_form(other[2:])
    if key is None or b"\0" in query.spelling[:-1] or plain_form(data[2:]) != key:
        return
    same = read_query(data)
    assert (same.flags, same.qname, same.qtype, same.qclass) == (query.flags, query.qname, query.qtype, query.qclass)
    assert (same.edns is None) == (query.edns is None)
