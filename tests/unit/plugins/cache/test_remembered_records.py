"""Pushed records as hashes: what they contradict, and how many octets they may take. `test_push` has the messages."""

from ipaddress import ip_address

from tests.support.cache_with_upstream import addresses, alias, wire
from topodns.dns.push import ALL_REMOVED, REMOVED, PushChange
from topodns.dns.rrtype import RRClass, RRType
from topodns.plugins.cache.remembered_records import MAX_OF_ALL, MAX_OF_ONE, RememberedRecords

NAME = wire("www.example.")
SUBJECT = NAME + b"\0\1\0\1"


def change(address: str, ttl: int = 5, rtype: int = RRType.A) -> PushChange:
    return PushChange(NAME, rtype, RRClass.IN, ttl, ip_address(address).packed if address else b"")


def test_nothing_is_contradicted_before_something_was_pushed() -> None:
    assert not RememberedRecords().contradict(SUBJECT, NAME, [addresses(5, "192.0.2.1")])


def test_records_are_a_set_whatever_their_order_ttl_and_number_of_pushes() -> None:
    remembered = RememberedRecords()
    remembered.apply(SUBJECT, [change("192.0.2.1"), change("192.0.2.2"), change("192.0.2.1", 60)])
    remembered.apply(SUBJECT, [change("192.0.2.3"), change("192.0.2.2", REMOVED), change("192.0.2.9", REMOVED)])
    assert not remembered.contradict(SUBJECT, NAME, [addresses(5, "192.0.2.3", "192.0.2.1")])
    assert remembered.contradict(SUBJECT, NAME, [addresses(5, "192.0.2.3")])
    assert remembered.octets == 16


def test_records_of_other_names_and_types_in_an_answer_do_not_count() -> None:
    remembered = RememberedRecords()
    remembered.apply(SUBJECT, [PushChange(NAME, RRType.CNAME, RRClass.IN, 5, wire("x."))])
    answer = [alias(5, "x."), addresses(5, "192.0.2.1", owner=wire("x."))]
    assert not remembered.contradict(SUBJECT, NAME, answer)
    remembered.apply(SUBJECT, [change("", ALL_REMOVED, RRType.CNAME)])
    assert not remembered.contradict(SUBJECT, NAME, [])
    assert remembered.contradict(SUBJECT, NAME, [addresses(5, "192.0.2.1")])


def test_an_alias_is_compared_only_where_aliases_are_pushed() -> None:
    remembered = RememberedRecords()
    remembered.apply(SUBJECT, [change("192.0.2.1")])
    assert not remembered.contradict(SUBJECT, NAME, [alias(5, "x.")])
    remembered.apply(SUBJECT, [PushChange(NAME, RRType.CNAME, RRClass.IN, 5, wire("y."))])
    assert remembered.contradict(SUBJECT, NAME, [alias(5, "x.")])


def test_too_many_records_are_not_remembered_until_they_are_forgotten() -> None:
    remembered = RememberedRecords()
    many = [change(f"10.0.{number >> 8}.{number & 255}") for number in range(MAX_OF_ONE // 8 + 1)]
    remembered.apply(SUBJECT, many)
    assert remembered.octets == 0
    remembered.apply(SUBJECT, [change("", ALL_REMOVED)])
    assert not remembered.contradict(SUBJECT, NAME, [addresses(5, "192.0.2.1")])
    remembered.forget(SUBJECT)
    remembered.apply(SUBJECT, [change("192.0.2.2")])
    assert remembered.contradict(SUBJECT, NAME, [addresses(5, "192.0.2.1")])


def test_all_subscriptions_together_have_a_limit() -> None:
    remembered = RememberedRecords()
    full = [change(f"10.0.{number >> 8}.{number & 255}") for number in range(MAX_OF_ONE // 8)]
    for number in range(MAX_OF_ALL // MAX_OF_ONE + 20):
        remembered.apply(wire(f"n{number}.example.") + b"\0\1\0\1", full)
    assert remembered.octets == MAX_OF_ALL
    for number in range(MAX_OF_ALL // MAX_OF_ONE + 20):
        remembered.forget(wire(f"n{number}.example.") + b"\0\1\0\1")
    assert remembered.octets == 0
    remembered.apply(SUBJECT, full)
    remembered.clear()
    assert remembered.octets == 0
