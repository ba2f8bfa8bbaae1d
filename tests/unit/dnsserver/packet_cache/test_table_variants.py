"""The packets that one entry of the packet cache answers, and those that look like them."""

from hashlib import blake2b
from random import Random

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.support.corefile_settings import only_block
from tests.support.deferred_results import at_once
from tests.support.dns_messages import DO, ECS, KEEPALIVE, NODE_IDENTITY, Opt, Reply
from tests.support.in_memory_server import CLIENT, PORT, Addresses, block, dig, handler, ready_made
from tests.support.query_variants import COOKIE, NSID, PADDING, UNKNOWN, messages, with_options
from topodns.dns.message import Query, Response, RRset
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.soa import soa_rrset
from topodns.dnsserver.handler import Handler
from topodns.dnsserver.packet_cache.table import OF_OPTIONS, OF_SPELLINGS, PacketCache, block_variants
from topodns.query.packet_entry import Variants
from topodns.query.plugin import Client, Resolution

CHAIN = 13
PLAIN, PLAIN_OPT = dig("web.example. A"), dig("web.example. A", Opt())


def warm(variants: Variants | None = OF_SPELLINGS, transport: str = "udp", *asked: bytes) -> Handler:
    """A handler that has answered these questions, else the two plain ones, until their answers are ready."""
    answering = handler(block(".", Addresses(), variants=variants), transport=transport)
    for data in asked or (PLAIN, PLAIN_OPT):
        for _ in range(3):
            answering.answer(data, CLIENT, PORT)
    return answering


def ready(table: PacketCache, data: bytes) -> bytes | None:
    return ready_made(table, data, CLIENT)


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(dig("wEB.eXample. A"), id="another spelling"),
        pytest.param(with_options((COOKIE, b"8 octets")), id="a cookie"),
        pytest.param(with_options((COOKIE, bytes(24))), id="a cookie of client and server"),
        pytest.param(with_options((PADDING, bytes(128))), id="padding"),
        pytest.param(with_options((PADDING, b"")), id="no padding"),
        pytest.param(with_options((UNKNOWN, b"\0\0\x29" + bytes(8))), id="an option that looks like an OPT record"),
        pytest.param(with_options((CHAIN, b"\0"), (65001, b"x"), (COOKIE, b"8 octets")), id="three options"),
        pytest.param(with_options((COOKIE, b"8 octets"), name="WEB.example. A"), id="a cookie in another spelling"),
    ],
)
def test_a_variant_of_a_kept_question_is_answered_as_by_the_steps(variant: bytes) -> None:
    table = warm().table
    expected = at_once(handler(block(".", Addresses())).answer(variant, CLIENT, PORT))
    assert ready(table, variant) == expected
    assert len(table) == 2


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(with_options((NSID, b"")), id="NSID"),
        pytest.param(with_options((ECS, bytes((0, 1, 0, 0)))), id="client subnet"),
        pytest.param(with_options((NODE_IDENTITY, b"node-a")), id="node identity"),
        pytest.param(with_options((KEEPALIVE, b"")), id="TCP keepalive"),
        pytest.param(with_options((COOKIE, b"8 octets"), (NODE_IDENTITY, b"node-a")), id="one of two is read here"),
        pytest.param(with_options(*[(COOKIE, b"8 octets")] * 9), id="more options than anybody needs"),
        pytest.param(with_options((COOKIE, b"8 octets"))[:-1], id="an option that runs past the end"),
        pytest.param(with_options((COOKIE, b"8 octets")) + b"\0", id="something behind"),
        pytest.param(with_options((COOKIE, b""))[:-2], id="half of an option's head"),
        pytest.param(with_options((COOKIE, b"8 octets"))[:20], id="half a message"),
        pytest.param(dig("web.example. A", Opt(options=[(COOKIE, b"1")], version=1)), id="another version"),
        pytest.param(dig("web.example. A", Opt(options=[(COOKIE, b"1")], flags=DO)), id="DO"),
        pytest.param(dig("web.example. A", Opt(4096, options=[(COOKIE, b"1")])), id="another payload size"),
        pytest.param(dig("WEB.example. AAAA"), id="another type"),
        pytest.param(dig("WEB.example. TYPE33"), id="a type with the octets of a letter"),
        pytest.param(dig("WEB.example. CH A"), id="another class"),
        pytest.param(dig("WEB.example. A", flags=0), id="another RD"),
    ],
)
def test_a_message_that_says_more_goes_through_the_steps(other: bytes) -> None:
    assert ready(warm().table, other) is None


def test_the_letters_of_a_type_are_none() -> None:
    lower, upper = dig("web.example. TYPE97"), dig("WEB.example. TYPE65")  # "a" and "A"
    assert ready(warm(OF_SPELLINGS, "udp", lower).table, upper) is None


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_random_cookies_and_spellings_of_one_name_have_one_entry_from_the_second_on(transport: str) -> None:
    rng, addresses = Random(1), Addresses()
    answering = handler(block(".", addresses, variants=OF_SPELLINGS), transport=transport)
    replies = set()
    for _ in range(500):
        name = "".join(rng.choice((char, char.upper())) for char in "web.example.")
        data = with_options((COOKIE, rng.randbytes(8)), name=f"{name} A")
        reply = ready(answering.table, data) if transport == "udp" else None
        reply = reply or at_once(answering.answer(data, CLIENT, PORT))
        assert reply is not None
        assert reply[12:25] == data[12:25]
        replies.add(reply[:12] + reply[25:])
    assert (addresses.asked, len(answering.table), len(replies)) == (2, 1, 1)
    assert ready(answering.table, PLAIN_OPT) == at_once(
        handler(block(".", Addresses())).answer(PLAIN_OPT, CLIENT, PORT)
    )


def test_random_cookies_for_random_names_fill_nothing() -> None:
    rng = Random(1)
    answering = handler(block(".", Addresses(), variants=OF_SPELLINGS))
    for number in range(5000):
        answering.answer(with_options((COOKIE, rng.randbytes(8)), name=f"N{number}.example. A"), CLIENT, PORT)
    assert len(answering.table) < 50


def test_each_variant_has_its_turn_of_several_addresses() -> None:
    answering = handler(block(".", Addresses(3), rotate=True, variants=OF_SPELLINGS))
    for _ in range(2):
        answering.answer(PLAIN, CLIENT, PORT)
    made = [ready(answering.table, dig(f"{name}.example. A")) for name in ("WEB", "web", "wEb")]
    assert len({Reply(each).answer[0].lower() for each in made if each is not None}) == 3


@pytest.mark.parametrize(
    ("lines", "variants"),
    [
        ("kubernetes\ntopology\nloadbalance\ncache\nforward . 192.0.2.1\nerrors\nprometheus", OF_SPELLINGS),
        ("forward . 192.0.2.1\nlog\nnsid", OF_SPELLINGS),
        ("rewrite name a.example. b.example.\nforward . 192.0.2.1", OF_OPTIONS),
        ('template IN A {\nanswer "{{ .Name }} 60 IN A 192.0.2.1"\n}', OF_OPTIONS),
        ("kubernetes {\npods verified\n}\nautopath @kubernetes", OF_OPTIONS),
        ("rewrite edns0 local set 0xffee 0x61\nforward . 192.0.2.1", None),
        ("rewrite continue name a.example. b.example.\nrewrite edns0 nsid set\nforward . 192.0.2.1", None),
        ("view big {\nexpr size() > 60\n}\nforward . 192.0.2.1", None),
    ],
)
def test_the_fields_that_a_block_reads_decide_its_variants(lines: str, variants: Variants | None) -> None:
    assert block_variants(only_block(lines)) == variants


def test_without_variants_only_the_plain_question_is_ready() -> None:
    table = warm(None).table
    assert ready(table, PLAIN) is not None
    for variant in (dig("WEB.example. A"), with_options((COOKIE, b"8 octets"))):
        assert ready(table, variant) is None


def test_with_those_of_options_a_spelling_goes_through_the_steps() -> None:
    table = warm(OF_OPTIONS).table
    assert ready(table, with_options((COOKIE, b"8 octets"))) is not None
    assert ready(table, dig("WEB.example. A")) is None
    assert ready(table, with_options((COOKIE, b"8 octets"), name="WEB.example. A")) is None


EXAMPLE = b"\x07example\0"
ALIAS = RRset(b"", RRType.CNAME, 5, (b"\x01a" + EXAMPLE,))
SPELLED_ELSEWHERE = {
    "an alias": Response(answer=(ALIAS, RRset(b"\x01a" + EXAMPLE, RRType.A, 5, (bytes(4),)))),
    "an owner that is the question's in lower case": Response(answer=(RRset(b"\3web" + EXAMPLE, 1, 5, (bytes(4),)),)),
    "a target": Response(answer=(RRset(b"", RRType.SRV, 5, (bytes(6) + EXAMPLE,)),)),
    "the SOA of an upstream": Response(
        Rcode.NXDOMAIN, authority=(RRset(EXAMPLE, RRType.SOA, 5, (b"\2ns" + EXAMPLE + EXAMPLE + bytes(20),)),)
    ),
    "glue": Response(
        answer=(RRset(b"", RRType.A, 5, (bytes(4),)),),
        additional=(RRset(b"\2ns" + EXAMPLE, RRType.A, 5, (bytes(4),)),),
    ),
}


@pytest.mark.parametrize("response", SPELLED_ELSEWHERE.values(), ids=list(SPELLED_ELSEWHERE))
@pytest.mark.parametrize("plugin", ["kubernetes", "cache"])
def test_a_reply_that_holds_names_beside_the_question_is_for_its_own_spelling(response: Response, plugin: str) -> None:
    def step(query: Query, client: Client) -> Resolution:
        return Resolution(response, plugin)

    answering = handler(block(".", step, variants=OF_SPELLINGS))
    for name in ("WEB.example. A", "web.example. A"):
        for _ in range(3):
            answering.answer(dig(name), CLIENT, PORT)
    assert ready(answering.table, dig("web.example. A")) is not None
    assert ready(answering.table, dig("WEB.example. A")) is None


def test_an_answer_of_a_plugin_that_may_read_the_spelling_is_for_that_spelling() -> None:
    def step(query: Query, client: Client) -> Resolution:
        return Resolution(Response(answer=(RRset(b"", RRType.A, 5, (bytes(4),)),)), "template")

    answering = handler(block(".", step, variants=OF_SPELLINGS))
    for _ in range(2):
        answering.answer(PLAIN_OPT, CLIENT, PORT)
    assert ready(answering.table, with_options((COOKIE, b"8 octets"))) is not None
    assert ready(answering.table, with_options((COOKIE, b"8 octets"), name="WEB.example. A")) is None


def zone(query: Query, client: Client) -> Resolution:
    """An address that depends on the name, or a denial by the SOA of the name's own parent, as its query spells it."""
    digest = blake2b(repr(query.qname).encode() + bytes([query.qtype & 0xFF]), digest_size=4).digest()
    if query.qtype == RRType.A:
        return Resolution(Response(answer=(RRset(b"", RRType.A, 5, (digest,)),)), "kubernetes")
    origin = query.spelling[1 + query.spelling[0] :] if query.qname else b"\0"
    return Resolution(Response(Rcode.NXDOMAIN, authority=(soa_rrset(origin, 7, 5),)), "kubernetes")


@hypothesis_settings(max_examples=75, deadline=None)
@given(st.lists(messages(), min_size=1, max_size=6), st.sampled_from(["udp", "tcp"]))
def test_a_message_never_gets_an_answer_that_differs_from_its_own(asked: list[bytes], transport: str) -> None:
    hot, slow = (handler(block(".", zone, variants=OF_SPELLINGS), transport=transport) for _ in range(2))
    for data in asked * 3:
        slow.table.clear()
        expected = at_once(slow.answer(data, CLIENT, PORT))
        got = ready(hot.table, data) or at_once(hot.answer(data, CLIENT, PORT))
        assert got == expected
        assert len(hot.table) <= len(asked)
