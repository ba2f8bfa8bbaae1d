"""Which objects have an address."""

from topodns.cluster.address_index import AddressIndex
from topodns.cluster.model import ObjectKey

A, B, C = (ObjectKey("default", name) for name in "abc")
ONE, TWO = b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02"


def test_objects_with_one_address_are_ordered_by_namespace_and_name() -> None:
    index: AddressIndex[ObjectKey] = AddressIndex()
    for key in (C, A, B, ObjectKey("apps", "z")):
        index.move(key, (), (ONE,))
    assert index.keys(ONE) == (ObjectKey("apps", "z"), A, B, C)


def test_an_object_leaves_the_addresses_that_it_no_longer_has() -> None:
    index: AddressIndex[ObjectKey] = AddressIndex()
    index.move(A, (), (ONE, TWO))
    index.move(B, (), (ONE,))
    index.move(A, (ONE, TWO), (TWO,))
    assert (index.keys(ONE), index.keys(TWO)) == ((B,), (A,))
    index.move(B, (ONE,), ())
    assert index.keys(ONE) == ()


def test_shared_addresses_are_those_of_several_objects() -> None:
    index: AddressIndex[ObjectKey] = AddressIndex()
    index.move(A, (), (ONE, TWO))
    index.move(B, (), (TWO,))
    assert list(index.shared((ONE, TWO, b"\x0a\x00\x00\x03"))) == [(TWO, [A, B])]


def test_of_each_namespace_the_first_keys_are_found() -> None:
    index: AddressIndex[ObjectKey] = AddressIndex()
    keys = [ObjectKey(namespace, name) for namespace in ("a", "b", "b-c", "c") for name in "xyz"]
    for key in keys:
        index.move(key, (), (ONE,))
    assert list(index.first_of_namespaces([ONE], 3)) == keys
    assert list(index.first_of_namespaces([ONE], 2)) == [key for key in keys if key.name != "z"]
    assert {key.namespace for key in index.first_of_namespaces([ONE], 1, besides="b")} == {"a", "b-c", "c"}
    assert list(index.first_of_namespaces([TWO], 1)) == []
    index.move(A, (), (TWO,))
    assert list(index.first_of_namespaces([TWO], 1)) == [A]
    assert list(index.first_of_namespaces([TWO], 1, besides="default")) == []
