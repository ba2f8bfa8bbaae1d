"""Questions that are plain enough for the fast path, and what the replies to those with one tail have in common."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.dns_messages import KEEPALIVE, RD, Opt, query
from tests.unit.dnsserver.fast_forward.scene import CLIENT, PORT, WWW, Resolver
from topodns.dns.message import Flag
from topodns.dnsserver.fast_forward.relay import Relay
from topodns.dnsserver.fast_forward.tail import _MAX_HEADS, _MAX_RECORDS, Tail


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
        fast_route.blocks.fast_routes, fast_route.socket_counters, fast_route.timers.time, lambda crossing, answer: b""
    )
    assert relay(data, CLIENT, PORT, 0.0) is None
