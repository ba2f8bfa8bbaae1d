"""Differences between two sets of records, as a client that applies them sees them."""

from sys import getsizeof

from hypothesis import given
from hypothesis import strategies as st

from topodns.dns.message import Response, RRset
from topodns.dns.push_messages import ALL_REMOVED, MAX_PUSHED_RDATA, REMOVED, PushChange
from topodns.dns.rrtype import Rcode, RRType
from topodns.dnsserver.push.answers import (
    WITHHELD,
    PushedRecords,
    all_changes,
    anew,
    difference,
    pushed_records,
)

WEB = b"\3web\0"
A, SRV = RRType.A, RRType.SRV
RDATAS = st.sampled_from([bytes([10, 0, 0, last]) for last in range(6)])
SETS = st.lists(st.tuples(st.sampled_from([5, 30]), st.lists(RDATAS, min_size=1, unique=True)), max_size=2).flatmap(
    lambda groups: st.builds(PushedRecords, st.just(distinct(groups)), st.integers(0, 2))
)


def distinct(groups: list[tuple[int, list[bytes]]]) -> tuple[RRset, ...]:
    """RRsets of one name and type; no record is in two."""
    seen: set[bytes] = set()
    rrsets = []
    for ttl, rdatas in groups:
        rrsets.append(RRset(b"", A, ttl, tuple(rdata for rdata in rdatas if rdata not in seen)))
        seen.update(rdatas)
    return tuple(rrsets)


def records(*addresses: int, ttl: int = 5, rest: int = 0) -> PushedRecords:
    return PushedRecords((RRset(b"", A, ttl, tuple(bytes([10, 0, 0, last]) for last in addresses)),), rest)


def added(last: int, ttl: int = 5) -> PushChange:
    return PushChange(WEB, A, 1, ttl, bytes([10, 0, 0, last]))


def removed(last: int) -> PushChange:
    return PushChange(WEB, A, 1, REMOVED, bytes([10, 0, 0, last]))


EMPTIED = PushChange(WEB, A, 1, ALL_REMOVED)
ALIAS = PushChange(WEB, RRType.CNAME, 1, 5, b"\3api\0")
NO_ALIAS = PushChange(WEB, RRType.CNAME, 1, ALL_REMOVED)


def apply(held: dict[bytes, int], changes: list[PushChange]) -> dict[bytes, int]:
    """What a client has of the type A after these changes."""
    held = dict(held)
    for change in changes:
        if change.rtype != A:
            assert change == NO_ALIAS
        elif change.ttl == ALL_REMOVED:
            held.clear()
        elif change.ttl == REMOVED:
            del held[change.rdata]
        else:
            held[change.rdata] = change.ttl
    return held


def ttls(of: PushedRecords) -> dict[bytes, int]:
    return {rdata: rrset.ttl for rrset in of.rrsets for rdata in rrset.rdatas}


def test_records_that_come_and_go_are_added_and_removed() -> None:
    assert difference(records(1, 2), records(2, 3), WEB, A) == [removed(1), added(3)]


def test_a_new_ttl_is_an_addition() -> None:
    assert difference(records(1), records(1, ttl=9), WEB, A) == [added(1, 9)]


def test_a_set_of_which_nothing_stays_is_removed_as_a_whole() -> None:
    assert difference(records(1, 2), records(), WEB, A) == [EMPTIED]
    assert difference(records(1, 2), records(3), WEB, A) == [EMPTIED, added(3)]


def test_another_order_is_no_difference() -> None:
    assert difference(records(1, 2), records(2, 1), WEB, A) == []


def test_if_only_the_rest_differs_one_record_is_added_again_or_the_empty_set_removed() -> None:
    assert difference(records(1, 2), records(2, 1, rest=7), WEB, A) == [added(2)]
    assert difference(records(), records(rest=7), WEB, A) == [EMPTIED]


@given(SETS, SETS)
def test_a_client_that_applies_the_difference_has_the_new_set(old: PushedRecords, new: PushedRecords) -> None:
    changes = difference(old, new, WEB, A)
    assert apply(ttls(old), changes) == ttls(new)
    assert bool(changes) == (ttls(old) != ttls(new) or old.rest != new.rest)
    assert apply({}, all_changes(new, WEB)) == apply(ttls(old), anew(new, WEB, A)) == ttls(new)


def answer(*rrsets: RRset, rcode: int = Rcode.NOERROR, additional: tuple[RRset, ...] = ()) -> PushedRecords:
    return pushed_records(Response(rcode, rrsets, additional=additional), WEB, A)


def test_records_of_the_name_and_type_are_followed_and_all_others_count_as_the_rest() -> None:
    own, same_owner = RRset(b"", A, 5, (b"\1\2\3\4",)), RRset(b"\3WEB\0", A, 5, (b"\5\6\7\x08",))
    other = RRset(b"\3api\0", A, 5, (b"\1\2\3\4",))
    cname = RRset(b"", RRType.CNAME, 5, (b"\3api\0",))
    assert answer(own).rrsets == (own,)
    assert answer(own, same_owner).rrsets == (own, same_owner)
    assert answer(cname, other).rrsets == (cname,)
    assert answer(cname, other).rest != answer(cname).rest
    assert answer(own).rest == answer(cname).rest == answer().rest


def test_an_alias_is_added_and_removed_beside_the_records_of_the_type() -> None:
    alias = PushedRecords((RRset(b"", RRType.CNAME, 5, (b"\3api\0",)),), 0)
    moved = PushedRecords((RRset(b"", RRType.CNAME, 5, (b"\3www\0",)),), 0)
    assert difference(records(1), alias, WEB, A) == [EMPTIED, ALIAS]
    assert difference(alias, records(1), WEB, A) == [NO_ALIAS, added(1)]
    assert difference(moved, alias, WEB, A) == [NO_ALIAS, ALIAS]
    assert anew(alias, WEB, A) == [EMPTIED, NO_ALIAS, ALIAS]
    assert anew(alias, WEB, RRType.CNAME) == [NO_ALIAS, ALIAS]


def test_ttls_of_other_names_records_which_decrease_in_an_upstream_s_answer_make_no_difference() -> None:
    cname, target = RRset(b"", RRType.CNAME, 5, (b"\3api\0",)), RRset(b"\3api\0", A, 30, (bytes(4),))
    first, later = answer(cname, target), answer(cname, target._replace(ttl=29))
    assert difference(first, later, WEB, A) == []
    assert difference(first, answer(cname, target._replace(rdatas=(b"\1\2\3\4",))), WEB, A) == [ALIAS]


def test_the_rcode_and_the_section_additional_count_and_their_order_does_not() -> None:
    one, two = (RRset(b"\3api\0", A, 5, (bytes(4),)), RRset(b"\3www\0", A, 5, (bytes(4), b"\1\2\3\4")))
    swapped = two._replace(rdatas=two.rdatas[::-1])
    assert answer(rcode=Rcode.NXDOMAIN).rest != answer().rest
    assert answer(additional=(one, two)).rest == answer(additional=(swapped, one)).rest
    assert answer(additional=(one,)).rest != answer(additional=(two,)).rest


def test_a_record_that_fits_in_no_message_counts_as_the_rest() -> None:
    large = RRset(b"", A, 5, (bytes(MAX_PUSHED_RDATA + 1),))
    assert answer(large).rrsets == ()
    assert answer(large).rest != answer().rest


def test_the_octets_of_an_address_are_those_of_the_state_and_others_are_made_for_the_answer() -> None:
    targets = RRset(b"", SRV, 5, (bytes(6) + b"\3api\0", bytes(6) + b"\3www\0"))
    assert records(1, 2).octets < 2 * 17
    assert pushed_records(Response(answer=(targets,)), WEB, SRV).octets >= sum(map(getsizeof, targets.rdatas))


def test_withheld_records_differ_from_those_of_any_answer() -> None:
    assert WITHHELD.octets == 0
    assert difference(answer(), WITHHELD, WEB, A) == [EMPTIED]
