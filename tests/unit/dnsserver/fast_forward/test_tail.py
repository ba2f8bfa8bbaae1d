"""The parts of replies that questions with one tail have in common."""

import pytest

from tests.support.dns_messages import RD, Opt, query
from tests.unit.dnsserver.fast_forward.test_relay import WWW, Resolver
from topodns.dns.message import Flag
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
