"""The fast path of plain questions: its replies are octet by octet those of the plugin chain; it takes no others."""

import struct
from random import Random

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.deferred_results import at_once
from tests.support.dns_messages import DO, KEEPALIVE, NODE_IDENTITY, RD, Opt, query
from tests.support.dso_upstream import Connecting
from tests.support.scripted_upstream import Behaviour, refuses, says, whatever
from tests.unit.dnsserver.fast_forward.scene import CLIENT, PORT, WWW, Resolver
from topodns.dns.message import Flag
from topodns.dns.name import name_wire
from topodns.dns.push_messages import PushChange, write_push
from topodns.dns.rrtype import Rcode
from topodns.dnsserver.fast_forward.relay import _MAX_HEADS, _MAX_RECORDS, Relay, Tail
from topodns.plugins.cache.counts import SubscriptionCounts
from topodns.plugins.cache.subscriptions import PushSubscriptions
from topodns.plugins.forward.handler import Options

AD, CD = Flag.AD, Flag.CD
IDENTITY = ((NODE_IDENTITY, b"node-a"),)

ANSWERS: dict[str, Behaviour] = {
    "an address": WWW,
    "a long TTL": says("www.example. 4000000000 IN A 192.0.2.7"),
    "a TTL of 0": says("www.example. 0 IN A 192.0.2.7"),
    "two TTLs": says("www.example. 300 IN A 192.0.2.7", "www.example. 60 IN A 192.0.2.8"),
    "authoritative": says("www.example. 300 IN A 192.0.2.7", flags=Flag.AA | Flag.RA | Flag.AD),
    "more than was asked for": says(
        "www.example. 300 IN A 192.0.2.7",
        authority=["example. 300 IN NS ns.example."],
        additional=["ns.example. 300 IN A 192.0.2.1"],
    ),
    "EDNS": says("www.example. 300 IN A 192.0.2.7", opt=Opt()),
    "an alias": says("www.example. 300 IN CNAME a.example.", "a.example. 30 IN A 192.0.2.7"),
    "nothing": says(authority=["example. 300 IN SOA ns.example. root.example. 1 2 3 4 5"]),
    "nothing for long": says(authority=["example. 300 IN SOA ns.example. root.example. 1 2 3 4 300"]),
    "no such name": says(rcode=Rcode.NXDOMAIN, authority=["example. 300 IN SOA ns.example. root.example. 1 2 3 4 5"]),
    "a failure": says(rcode=Rcode.SERVFAIL),
    "cut short": says("www.example. 300 IN A 192.0.2.7", flags=Flag.TC),
    "more than fits": says(*[f"www.example. 300 IN A 192.0.2.{n}" for n in range(1, 90)]),
    "no answer": refuses,
    "several addresses": says(*[f"www.example. 300 IN A 192.0.2.{n}" for n in range(1, 6)]),
    "an address twice": says(*["www.example. 300 IN A 192.0.2.7"] * 2),
    "addresses of two TTLs, the last one": says(
        *["www.example. 300 IN A 192.0.2.7"] * 3, "www.example. 299 IN A 192.0.2.8"
    ),
    "a TTL of a week": says("www.example. 604800 IN A 192.0.2.7"),
    "a TTL of a week and a second": says("www.example. 604801 IN A 192.0.2.7"),
    "an address of the other type": says("www.example. 300 IN AAAA 2001:db8::7"),
    "both types": says("www.example. 300 IN A 192.0.2.7", "www.example. 300 IN AAAA 2001:db8::7"),
    "an address of another name": says("ww.example. 300 IN A 192.0.2.7"),
    "another class": says("www.example. 300 CH A 192.0.2.7"),
    "a wildcard's name in another case": says("WWW.example. 300 IN A 192.0.2.7"),
}

NOT_KEPT = {
    *("a TTL of 0", "a long TTL", "nothing", "no such name", "a failure", "no answer", "cut short"),
    *("an address of the other type", "another class"),
}

OPTS = st.sampled_from([None, Opt(), Opt(size=0), Opt(size=4096), Opt(flags=DO), Opt(size=700, flags=DO)])


@pytest.mark.parametrize("answer", ANSWERS)
@hypothesis.settings(max_examples=12, deadline=None)
@given(
    opt=OPTS,
    flags=st.sampled_from([0, RD, RD | AD, RD | CD, RD | AD | CD]),
    directives=st.sampled_from(
        [
            *("cache 30", "", "cache 30 {\nkeepttl\n}", "loadbalance", "cache 30\nloadbalance"),
            *("loadbalance {\nprefer 192.0.2.4/31\n}", "cache {\nsuccess 100 3600 400\n}"),
        ]
    ),
    qtype=st.sampled_from(["A", "AAAA"]),
    udp=st.booleans(),
    origin=st.sampled_from([".", "example.", "www.example."]),
    options=st.sampled_from([(), IDENTITY]),
)
def test_fast_path_and_chain_give_the_same_octets_and_counts(
    answer: str, opt: Opt | None, flags: int, directives: str, qtype: str, udp: bool, origin: str, options: Options
) -> None:
    data = query(f"www.example. {qtype}", opt, flags)
    fast, chain = (Resolver(each, ANSWERS[answer], directives, udp, origin, options) for each in (True, False))
    for _ in range(3):  # the second time from the cache
        replies = [resolver.ask(data) for resolver in (fast, chain)]
        assert replies[0] == replies[1]
    assert fast.counted == chain.counted
    assert fast.upstream.asked == chain.upstream.asked


PLAIN = [
    *(WWW, ANSWERS["several addresses"]),
    says("www.example. 60 IN AAAA 2001:db8::7", "www.example. 60 IN AAAA 2001:db8::8"),
    says("www.example. 300 IN A 192.0.2.7", authority=["example. 300 IN NS ns.example."], opt=Opt()),
]


@hypothesis.settings(max_examples=75, deadline=None)
@given(data=st.data(), plain=st.sampled_from(PLAIN), udp=st.booleans(), cached=st.booleans(), opt=OPTS)
def test_a_reply_with_any_octets_changed_is_treated_alike_by_fast_path_and_chain(
    data: st.DataObject, plain: Behaviour, udp: bool, cached: bool, opt: Opt | None
) -> None:
    def changed(message: bytes) -> bytes:
        whole = plain(message)
        assert isinstance(whole, bytes)
        octets = bytearray(whole)
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(2, len(octets) - 1))
            kind = data.draw(st.sampled_from(["set", "flip", "cut", "insert"]))
            if kind == "set":
                octets[at] = data.draw(st.sampled_from([0, 1, 2, 4, 5, 12, 16, 28, 41, 0x80, 0xC0, 0xFF]))
            elif kind == "flip":
                octets[at] ^= 1 << data.draw(st.integers(0, 7))
            elif kind == "insert":
                octets.insert(at, data.draw(st.integers(0, 255)))
            elif at > 12:
                del octets[at:]
        return bytes(octets)

    asked = query(f"www.example. {'AAAA' if plain is PLAIN[2] else 'A'}", opt)
    replies: list[bytes] = []

    def recorded(message: bytes) -> bytes:
        replies.append(changed(message))
        return replies[-1]

    directives = "cache 30\nloadbalance" if cached else "loadbalance"
    fast = Resolver(True, recorded, directives, udp)
    answers = [fast.ask(asked) for _ in range(2)]
    again = iter(replies)
    chain = Resolver(False, lambda message: next(again), directives, udp)
    assert [chain.ask(asked) for _ in range(2)] == answers
    assert (chain.counted, chain.upstream.asked) == (fast.counted, fast.upstream.asked)


def test_heads_of_records_of_one_type_are_not_those_of_the_other() -> None:
    """A reply that answers a question for A with an AAAA record is not relayed, whatever was relayed before."""
    both = says("www.example. 300 IN AAAA 2001:db8::7")
    fast, chain = (Resolver(way, both, "") for way in (True, False))
    for qtype in ("AAAA", "A", "AAAA", "A"):
        data = query(f"www.example. {qtype}")
        replies = [resolver.ask(data) for resolver in (fast, chain)]
        assert replies[0] == replies[1]


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("udp", [True, False])
def test_a_variant_gets_the_octets_of_the_chain(answer: str, udp: bool) -> None:
    rng = Random(1)
    ready, chain = (Resolver(False, ANSWERS[answer], "cache 30", udp) for _ in range(2))
    for number in range(40):
        name = "".join(rng.choice((char, char.upper())) for char in "www.example.") if number % 2 else "www.example."
        options = [(10, rng.randbytes(8)), (4711, b"")][: rng.randrange(3)]
        data = query(f"{name} A", rng.choice((None, Opt(options=options), Opt(options=options, flags=DO))))
        chain.handler.table.clear()
        assert ready.ask_ready(data) == chain.ask(data)
    assert (ready.variants > 0) == (answer not in NOT_KEPT)


NAMES = [
    *("www.example. A", "other.example. A", "a.www.example. AAAA", "example. A", "www.other. A", "cluster.local. A"),
    *("www.cluster.local. A", "local. A", "www.local. A", ". A", f"{'a' * 63}.example. A", "wWw.example. A"),
    f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 60}. A",
]


@pytest.mark.parametrize("origin", [".", "example.", "local."])
def test_a_parsed_rest_of_a_name_is_used_only_for_that_rest(origin: str) -> None:
    """The octets behind a first label are parsed once, and used again only for messages that end in these octets."""
    fast, chain = (Resolver(each, WWW, origin=origin) for each in (True, False))
    asked = [query(name, opt) for name in NAMES for opt in (None, Opt(), Opt(size=600), Opt(flags=DO))]
    shifted = [data[:12] + b"\0" + data[12:] for data in asked]
    overlong = [data[:12] + bytes([65]) + b"a" * 65 + data[12:] for data in asked]
    pointing = [data[:12] + b"\xc0" + data[13:] for data in asked]
    for data in (*asked, *shifted, *overlong, *pointing, *asked):
        replies = [resolver.ask(data) for resolver in (fast, chain)]
        assert replies[0] == replies[1], data
    assert fast.upstream.asked == chain.upstream.asked


def test_an_upstream_with_node_identity_gets_it_with_each_plain_query() -> None:
    """A client's own option is not forwarded: such a query takes the chain, which removes the option."""
    forged = Opt(options=((NODE_IDENTITY, b"node-b"),))
    resolver = Resolver(True, whatever, origin="example.", options=IDENTITY)
    for name, opt in (("a.example. A", None), ("b.example. A", Opt()), ("c.example. A", forged)):
        resolver.ask(query(name, opt))
    got = [asked.message[asked.message.index(b"\7example\0") + 13 :] for asked in resolver.upstream.asked]
    assert got == [Opt(size=1232, options=IDENTITY).wire()] * 3


def test_a_failure_of_ours_is_kept_like_one_of_the_upstream() -> None:
    """RFC 9520 section 3.2: so that an upstream that is down is not asked for each question anew."""
    data = query("www.example. A")
    resolver = Resolver(True, refuses, "cache 30 {\nservfail 20s\n}")
    first = resolver.ask(data)
    asked = len(resolver.upstream.asked)
    again = resolver.ask(data)
    assert [reply[3] & 0x0F for reply in (first, again) if reply is not None] == [Rcode.SERVFAIL] * 2
    assert len(resolver.upstream.asked) == asked


def test_equal_questions_on_fast_path_and_chain_are_one_question_upstream() -> None:
    resolver = Resolver(True, WWW)
    resolver.upstream.delay = 0.1
    outcomes = [resolver.handler.answer(query(text), CLIENT, PORT) for text in ("www.example. A", "wwW.example. A")]
    resolver.timers.advance(0.2)
    assert [at_once(outcome) is not None for outcome in outcomes] == [True, True]
    assert len(resolver.upstream.asked) == 1


def test_a_question_of_a_client_with_too_many_is_dropped_by_the_chain() -> None:
    resolver = Resolver(True, WWW)
    resolver.upstream.delay = 0.1
    for text in ("a.example. A", "b.example. A"):
        resolver.handler.answer(query(text), CLIENT, PORT)
    assert resolver.ask(query("c.example. A")) is None
    assert resolver.in_flight.dropped_by_client == 1


def test_a_bug_on_the_fast_path_is_servfail_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object) -> None:
        raise ZeroDivisionError("as bugs do")

    scene = Resolver(True, WWW)
    monkeypatch.setattr(scene.upstream, "exchange", fails)
    reply = scene.ask(query("www.example. A"))
    assert reply is not None
    assert reply[3] & 15 == Rcode.SERVFAIL
    assert scene.socket_counters.panics == 1


def test_fast_path_and_chain_keep_an_answer_that_contradicts_a_push_for_a_second() -> None:
    ttls = []
    for fast in (True, False):
        resolver = Resolver(fast, WWW, "cache 30")
        assert resolver.cache is not None
        upstream, counts = Connecting(resolver.timers), SubscriptionCounts()
        resolver.cache.push = PushSubscriptions(
            100, [upstream], resolver.cache.memory, resolver.handler.table.forget, resolver.timers, Random(1), counts
        )
        resolver.ask(query("www.example. A"))
        resolver.handler.answer(query("www.example. A"), CLIENT, PORT)
        (wire,) = upstream.wires
        wire.establish()
        wire.respond()
        for message in write_push([PushChange(name_wire(("www", "example")), 1, 1, 5, bytes(4))]):
            wire.say(message)
        reply = resolver.ask(query("www.example. A"))
        assert reply is not None
        ttls.append(int.from_bytes(reply[-10:-6], "big"))
        assert (reply[-4:], counts.contradicted) == (bytes((192, 0, 2, 7)), 1)
    assert ttls == [1, 1]


def tail(directives: str = "", flags: int = RD, qtype: str = "A", opt: Opt | None = None) -> Tail:
    relay = Resolver(True, WWW, directives).handler._relay
    assert relay is not None
    found = relay._tails.read(query(f"www.example. {qtype}", opt, flags))
    assert found is not None
    return found


def record(ttl: int, rtype: int = 1, size: int = 4, rclass: int = 1) -> bytes:
    """The octets of an answer record before its RDATA."""
    return b"\xc0\x0c" + b"".join(
        number.to_bytes(octets, "big") for number, octets in ((rtype, 2), (rclass, 2), (ttl, 4), (size, 2))
    )


def test_the_header_of_a_reply_has_the_counts_of_the_upstream_and_the_flags_of_both() -> None:
    head = tail(flags=RD | Flag.CD, opt=Opt()).read_head(b"\x81\xa0\0\1\0\2")
    assert head is not None
    assert (head.header, head.records) == (b"\x81\xb0\0\1\0\2\0\0\0\1", 2)


@pytest.mark.parametrize(("flags", "shown"), [(RD, False), (RD | Flag.AD, True)])
def test_with_cache_ad_is_shown_to_those_who_ask_for_it(flags: int, shown: bool) -> None:
    head = tail("cache 30", flags).read_head(b"\x81\xa0\0\1\0\1")
    assert head is not None
    assert bool(head.header[1] & Flag.AD) is shown
    assert head.entry_head[0] & Flag.AD  # the cache has it for all


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"\x81\x83\0\1\0\1", id="NXDOMAIN"),
        pytest.param(b"\x83\x80\0\1\0\1", id="TC"),
        pytest.param(b"\x01\x80\0\1\0\1", id="no QR"),
        pytest.param(b"\x81\x80\0\2\0\1", id="two questions"),
        pytest.param(b"\x81\x80\0\1\0\0", id="no answer"),
        pytest.param(b"\x81\x80\0\1", id="cut"),
    ],
)
def test_of_another_reply_there_is_no_header(octets: bytes) -> None:
    found = tail()
    assert found.read_head(octets) is None
    assert found.heads == {}


def test_the_ttl_of_a_record_is_what_cache_makes_of_it() -> None:
    assert tail().read_record(record(300)) == (300, record(300))
    assert tail("cache 30").read_record(record(300)) == (30, record(30))
    assert tail("cache 30").read_record(record(0)) == (0, record(0))
    assert tail(qtype="AAAA").read_record(record(300, 28, 16)) == (300, record(300, 28, 16))


@pytest.mark.parametrize(
    "octets",
    [
        *(record(604_801), record(1 << 31), record(300, 28, 16), record(300, 1, 5), record(300, rclass=3)),
        *(b"\xc0\x0d" + record(300)[2:], record(300)[:-1], b""),
    ],
)
def test_of_another_record_there_is_no_head(octets: bytes) -> None:
    found = tail()
    assert found.read_record(octets) is None
    assert found.records == {}


def test_an_upstream_with_ever_other_flags_and_ttls_takes_no_more_memory() -> None:
    found = tail()
    for number in range(1, 2 * _MAX_RECORDS):
        found.read_head(b"\x81\x80\0\1" + number.to_bytes(2, "big"))
        found.read_record(record(number))
    assert len(found.heads) <= _MAX_HEADS
    assert len(found.records) <= _MAX_RECORDS


@given(st.binary(max_size=80), st.booleans())
def test_for_any_octets_fast_path_and_chain_reply_the_same(tail: bytes, framed: bool) -> None:
    data = (struct.pack("!HHHHHH", 7, RD, 1, 0, 0, 0) if framed else b"") + tail
    fast, chain = (Resolver(each, WWW) for each in (True, False))
    assert fast.ask(data) == chain.ask(data)


@pytest.mark.parametrize(
    "data",
    [
        query("WWW.example. A"),
        query("www.example. TXT"),
        query("web.default.svc.cluster.local. A"),
        query("www.example. A", Opt(options=((KEEPALIVE, b""),))),
        query("www.example. A", Opt(version=1)),
        query("www.example. A") + b"\0",
        query("www.example. A")[:-1],
    ],
    ids=["mixed case", "no address", "an origin of the cluster", "an option", "EDNS 1", "more", "less"],
)
def test_a_query_that_is_not_plain_takes_the_chain(data: bytes) -> None:
    """The fast path does not take it, and the reply is that of the chain."""
    fast, chain = Resolver(True, WWW), Resolver(False, WWW)
    assert fast.ask(data) == chain.ask(data)
    fast_route = Resolver(True, WWW)
    relay = Relay(
        fast_route.blocks.fast_routes,
        fast_route.socket_counters,
        fast_route.timers.time,
        slowly=lambda crossing, answer: b"",
        again=lambda crossing: None,
    )
    assert relay(data, CLIENT, PORT, 0.0) is None
