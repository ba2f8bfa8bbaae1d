"""Pushed records as hashes: how answers compare with them, and how many octets they take. `test_push` has messages."""

import time
from ipaddress import ip_address

import pytest

from tests.support.cache_with_upstream import addresses, alias, wire
from topodns.dns.message import RRset
from topodns.dns.push_messages import ALL_REMOVED, REMOVED, PushChange
from topodns.dns.rrtype import RRClass, RRType
from topodns.plugins.cache.subscriptions import MAX_OF_ALL, MAX_OF_ONE, RecordMatch, RememberedRecords

NAME = wire("www.example.")
SUBJECT = NAME + b"\0\1\0\1"
SAME, OTHER, UNKNOWN = RecordMatch.SAME, RecordMatch.OTHER, RecordMatch.UNKNOWN
ONE = addresses(5, "192.0.2.1")


def change(address: str, ttl: int = 5, rtype: int = RRType.A, rclass: int = RRClass.IN) -> PushChange:
    return PushChange(NAME, rtype, rclass, ttl, ip_address(address).packed if address else b"")


def cname(target: str) -> PushChange:
    return PushChange(NAME, RRType.CNAME, RRClass.IN, 5, wire(target))


def begun(*changes: PushChange) -> RememberedRecords:
    remembered = RememberedRecords()
    remembered.begin(SUBJECT)
    remembered.apply(SUBJECT, changes)
    return remembered


def many(number: int) -> list[PushChange]:
    return [change(f"10.0.{each >> 8}.{each & 255}") for each in range(number)]


def test_without_a_subscription_nothing_is_known() -> None:
    remembered = RememberedRecords()
    remembered.apply(SUBJECT, [change("192.0.2.1")])
    assert remembered.compare(SUBJECT, [ONE]) is UNKNOWN
    assert remembered.octets == 0


def test_a_name_without_records_is_remembered_from_the_beginning() -> None:
    remembered = begun()
    assert remembered.compare(SUBJECT, [ONE]) is OTHER
    assert remembered.compare(SUBJECT, []) is UNKNOWN  # NXDOMAIN or NODATA: neither is pushed


def test_a_subscription_that_begins_anew_has_no_records() -> None:
    remembered = begun(change("192.0.2.1"))
    remembered.begin(SUBJECT)
    assert remembered.compare(SUBJECT, [ONE]) is OTHER
    assert remembered.octets == 0


def test_records_are_a_set_whatever_their_order_ttl_and_number_of_pushes() -> None:
    remembered = begun(change("192.0.2.1"), change("192.0.2.2"), change("192.0.2.1", 60))
    remembered.apply(SUBJECT, [change("192.0.2.3"), change("192.0.2.2", REMOVED), change("192.0.2.9", REMOVED)])
    assert remembered.compare(SUBJECT, [addresses(5, "192.0.2.3", "192.0.2.1")]) is SAME
    assert remembered.compare(SUBJECT, [addresses(5, "192.0.2.3")]) is OTHER
    assert remembered.octets == 16


@pytest.mark.parametrize(
    ("answer", "additional", "expected"),
    [
        ([addresses(5, "192.0.2.1", owner=NAME.upper())], [], SAME),
        ([ONE, RRset(b"", RRType.TXT, 5, (b"\1x",))], [], UNKNOWN),
        ([ONE], [addresses(5, "192.0.2.9", owner=wire("ns."))], UNKNOWN),
        ([addresses(5, "192.0.2.1", owner=wire("x."))], [], OTHER),
        ([alias(5, "x.")], [], OTHER),
        ([alias(5, "x."), addresses(5, "192.0.2.1", owner=wire("x."))], [], OTHER),
        ([], [], OTHER),
    ],
)
def test_what_is_no_record_of_the_name_and_type_is_unknown(
    answer: list[RRset], additional: list[RRset], expected: RecordMatch
) -> None:
    assert begun(change("192.0.2.1")).compare(SUBJECT, answer, additional) is expected


def test_addresses_beside_an_srv_record_are_unknown() -> None:
    subject = NAME + b"\0\x21\0\1"
    rdata = b"\0\0\0\0\0\x35" + wire("a.example.")
    remembered = RememberedRecords()
    remembered.begin(subject)
    remembered.apply(subject, [PushChange(NAME, RRType.SRV, RRClass.IN, 5, rdata)])
    srv = RRset(b"", RRType.SRV, 5, (rdata,))
    assert remembered.compare(subject, [srv]) is SAME
    assert remembered.compare(subject, [srv], [addresses(5, "192.0.2.1", owner=wire("a.example."))]) is UNKNOWN
    assert remembered.compare(subject, [srv._replace(rdatas=(rdata.replace(b"\1a", b"\1b"),))]) is OTHER


def test_the_target_of_an_alias_is_unknown() -> None:
    remembered = begun(cname("x."))
    assert remembered.compare(SUBJECT, [alias(5, "x."), addresses(5, "192.0.2.1", owner=wire("x."))]) is UNKNOWN
    assert remembered.compare(SUBJECT, [alias(5, "y.")]) is OTHER
    assert remembered.compare(SUBJECT, [ONE]) is OTHER


def test_an_alias_is_unknown_where_nothing_is_pushed_since_some_upstreams_push_no_alias() -> None:
    assert begun().compare(SUBJECT, [alias(5, "x.")]) is UNKNOWN


@pytest.mark.parametrize(
    ("removal", "left"),
    [
        (change("", ALL_REMOVED), [alias(5, "x.")]),
        (change("", ALL_REMOVED, RRType.CNAME), [ONE]),
        (change("", ALL_REMOVED, RRType.ANY), None),
        (change("", ALL_REMOVED, RRType.ANY, RRClass.ANY), None),
        (change("", ALL_REMOVED, RRType.TXT, RRClass.ANY), None),  # of class ANY, whatever the type
    ],
)
def test_removals_of_rrsets(removal: PushChange, left: list[RRset] | None) -> None:
    remembered = begun(change("192.0.2.1"), cname("x."), removal)
    assert remembered.compare(SUBJECT, left or []) is (SAME if left else UNKNOWN)
    assert remembered.octets == (8 if left else 0)


def test_the_time_is_linear_in_the_number_of_changes() -> None:
    """A PUSH has 1,362 changes at most: these took 130 ms when each removal made the set of records anew."""
    removals = [change("", ALL_REMOVED, RRType.CNAME)] * 1362
    remembered = begun(*many(MAX_OF_ONE // 8))

    def seconds(changes: list[PushChange]) -> float:
        began = time.process_time()
        remembered.apply(SUBJECT, changes)
        return time.process_time() - began

    few, all_of_them = (min(seconds(each) for _ in range(5)) for each in (removals[:1], removals))
    assert all_of_them < few + 1362 * 5e-6
    assert remembered.octets == MAX_OF_ONE


def test_too_many_records_are_not_remembered_until_the_subscription_begins_anew() -> None:
    remembered = begun(*many(MAX_OF_ONE // 8 + 1))
    assert remembered.octets == 0
    remembered.apply(SUBJECT, [change("", ALL_REMOVED)])
    assert remembered.compare(SUBJECT, [ONE]) is UNKNOWN
    remembered.begin(SUBJECT)
    remembered.apply(SUBJECT, [change("192.0.2.2")])
    assert remembered.compare(SUBJECT, [ONE]) is OTHER


def test_all_subscriptions_together_have_a_limit() -> None:
    remembered = RememberedRecords()
    full = many(MAX_OF_ONE // 8)
    subjects = [wire(f"n{number}.example.") + b"\0\1\0\1" for number in range(MAX_OF_ALL // MAX_OF_ONE + 20)]
    for subject in subjects:
        remembered.begin(subject)
        remembered.apply(subject, full)
    assert remembered.octets == MAX_OF_ALL
    for subject in subjects:
        remembered.forget(subject)
    assert remembered.octets == 0
    remembered.begin(SUBJECT)
    remembered.apply(SUBJECT, full)
    remembered.clear()
    assert remembered.octets == 0
