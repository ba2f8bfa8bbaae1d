"""Objects of a state as octets: read back equal, and with the texts that many have in memory once."""

from typing import get_args

import pytest
from hypothesis import given

from tests.support.model_builders import (
    cluster_property,
    endpoint,
    endpoint_slice,
    node_locator,
    pod_locator,
    service,
    stateful_set,
)
from tests.support.random_clusters import objects
from topodns.cluster.model import (
    ClusterObject,
    EndpointSlice,
    Kind,
    ObjectKey,
    RefusedAddresses,
    Service,
    kind_of,
)
from topodns.cluster.packed_objects import KINDS, pack_objects, unpack_objects


def there_and_back(value: ClusterObject) -> ClusterObject:
    (found,), deleted = unpack_objects(kind_of(value), pack_objects([value]))
    assert deleted == []
    return found


@given(objects)
def test_objects_read_back_equal_and_of_the_same_version(value: ClusterObject) -> None:
    found = there_and_back(value)
    assert (found, type(found), found.version) == (value, type(value), value.version)
    assert hash(found.key) == hash(value.key)


@pytest.mark.parametrize(
    "value",
    [
        service("imported", imported=True, cluster_ips=("10.0.0.1", "fd00::1")),
        node_locator("n0", ("10.0.0.1",), labels={"a": "b"}),
        pod_locator("p", ("10.0.0.1",), "n0"),
        stateful_set("db", "db"),
        cluster_property("east"),
    ],
)
def test_objects_of_every_kind_read_back(value: ClusterObject) -> None:
    assert there_and_back(value) == value


def test_refused_addresses_read_back_as_named_tuples() -> None:
    refused = (RefusedAddresses("malformed", 2, "podIPs[0]: x"),)
    locator = node_locator("n0")
    object.__setattr__(locator, "refused", refused)
    found = there_and_back(locator)
    assert getattr(found, "refused")[0].reason == "malformed"  # noqa: B009


def test_keys_of_deleted_objects_are_keys() -> None:
    upserted, (key,) = unpack_objects("Pod", pack_objects([], [ObjectKey("shop", "p")]))
    assert (upserted, key.namespace, type(key)) == ([], "shop", ObjectKey)


def test_texts_that_many_endpoints_have_are_shared() -> None:
    packed = pack_objects([endpoint_slice("db", *(endpoint(f"10.0.0.{n}", node="node-1") for n in (1, 2)))])
    slices = [unpack_objects("EndpointSlice", packed)[0][0] for _ in range(2)]
    names = {id(each.node_name) for one in slices if isinstance(one, EndpointSlice) for each in one.endpoints}
    assert len(names) == 1


def test_the_families_of_services_read_back_as_one_tuple_for_all() -> None:
    packed = pack_objects([service(name, ip_families=("IPv4", "IPv6")) for name in ("a", "b")])
    one, other = (each for each in unpack_objects("Service", packed)[0] if isinstance(each, Service))
    assert one.ip_families == ("IPv4", "IPv6")
    assert one.ip_families is other.ip_families


def test_every_kind_has_its_type() -> None:
    assert set(KINDS) == set(get_args(Kind))
