"""Labels of endpoints, kept from one SRV answer to the next: what they take, and when they go."""

from tests.support.model_builders import endpoint, packed
from topodns.cluster.endpoints import Group
from topodns.plugins.kubernetes.label_cache import KeptLabels


def group(first: int, number: int, hostname: str = "") -> Group:
    """Endpoints 10.0.x.y from number `first` on."""
    members = tuple(endpoint(f"10.0.{at >> 8}.{at & 255}", hostname=hostname) for at in range(first, first + number))
    return Group(members)


def test_labels_come_in_order_and_as_many_as_there_are() -> None:
    kept, some = KeptLabels(pod_names=False), group(0, 30)
    assert kept.between(some, 0, 2) == [b"\x0810-0-0-0", b"\x0810-0-0-1"]
    assert kept.between(some, 29, 35) == [b"\x0910-0-0-29"]
    assert kept.between(some, 30, 35) == []
    assert kept.between(some, 1, 2) == [b"\x0810-0-0-1"]


def test_endpoints_of_one_name_have_one_label_and_all_their_addresses() -> None:
    members = [endpoint(f"10.0.0.{at}", hostname=("a", "b", "a")[at % 3], pod="p") for at in range(30)]
    some = Group(tuple(members))
    kept = KeptLabels(pod_names=True)
    assert kept.between(some, 0, 100) == [b"\x01a", b"\x01b"]
    assert list(kept.addresses(some)) == [b"\x01a", b"\x01b"]
    assert kept.addresses(some)[b"\x01b"] == tuple(packed(f"10.0.0.{at}") for at in range(1, 30, 3))


def test_one_name_for_all_has_the_addresses_of_the_group_itself() -> None:
    kept, some = KeptLabels(pod_names=False), group(0, 5000, "same")
    assert kept.addresses(some)[b"\x04same"] is some.addresses


def test_labels_of_few_endpoints_are_not_kept() -> None:
    kept, few = KeptLabels(pod_names=False), group(0, 16)
    assert len(kept.between(few, 0, 100)) == 16
    assert len(kept.addresses(few)) == 16
    assert kept.octets == 0


def test_no_more_memory_is_used_than_allowed_and_the_least_recently_used_label_is_dropped() -> None:
    kept = KeptLabels(pod_names=False, max_octets=200_000)
    groups = [group(first, 256) for first in range(0, 5120, 256)]
    for each in groups:
        kept.between(each, 0, 1000)
        kept.between(groups[0], 0, 1000)  # so this one stays
        kept.addresses(each)
        assert 0 <= kept.octets <= 200_000
    before = kept.octets
    kept.between(groups[0], 0, 1000)
    assert kept.octets == before
    kept.between(groups[1], 0, 1000)
    assert kept.octets != before


def test_a_group_is_not_kept_alive_and_its_place_in_memory_may_be_another_s() -> None:
    kept = KeptLabels(pod_names=False)
    identities: set[int] = set()
    for first in range(0, 5000, 20):
        some = group(first, 20)
        identities.add(id(some))
        assert kept.between(some, 0, 1) == KeptLabels(pod_names=False).between(some, 0, 1)
        assert list(kept.addresses(some).values()) == [(each.address,) for each in some.endpoints]
    assert len(identities) < 250  # or nothing was tested
