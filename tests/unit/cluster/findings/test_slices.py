"""EndpointSlices that no Service has: each is named with the Service that may be meant, and the Service names it."""

from dataclasses import replace

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, listed_state, namespace, service
from tests.unit.cluster.findings.scene import KINDS, state_of
from topodns.cluster.findings.finding import MAX_NAMED, Severity
from topodns.cluster.findings.objects import object_findings
from topodns.cluster.findings.slices import LOOKED_AT, MAX_NAMESPACES, SERVICES, at_hand_steps, stray_steps
from topodns.cluster.model import ClusterObject, EndpointSlice, ObjectKey, Replaced
from topodns.cluster.state import ClusterState
from topodns.time_slices import do_at_once

SHOP = namespace("shop")
CACHE = service("cache", "shop", annotation="*")
HOST = endpoint("10.0.0.1", "n1")
LACKS = "Service shop/cache: it has no EndpointSlice, which would have the label kubernetes.io/service-name=cache"
UNLABELLED = "EndpointSlice shop/cache-a has no label kubernetes.io/service-name, so it is of no Service"


def slice_of(service_name: str, of_namespace: str = "shop", name: str = "cache-a") -> EndpointSlice:
    return endpoint_slice(service_name, HOST, namespace=of_namespace, name=name)


def lines(*objects: ClusterObject, of_files: bool = False) -> list[str]:
    return [str(each) for each in object_findings(state_of(*objects, of_files=of_files)) if each is not None]


@pytest.mark.parametrize("of_files", [True, False])
def test_a_slice_that_names_a_service_that_does_not_exist_is_named_with_the_one_that_may_be_meant(
    of_files: bool,
) -> None:
    assert lines(SHOP, CACHE, slice_of("cahce"), of_files=of_files) == [
        "EndpointSlice shop/cache-a names the Service cahce, which does not exist, did you mean cache?",
        f"{LACKS}; EndpointSlice cache-a of the namespace names cahce",
    ]


@pytest.mark.parametrize("of_files", [True, False])
def test_a_slice_in_another_namespace_is_named_with_the_service_that_lacks_it(of_files: bool) -> None:
    assert lines(SHOP, namespace("shopp"), CACHE, slice_of("cache", "shopp"), of_files=of_files) == [
        "EndpointSlice shopp/cache-a names the Service cache, which does not exist in namespace shopp, "
        "did you mean shop/cache?",
        f"{LACKS}; EndpointSlice cache-a of namespace shopp names cache",
    ]


@pytest.mark.parametrize("of_files", [True, False])
def test_a_slice_without_the_label_is_named_where_a_service_of_the_namespace_lacks_slices(of_files: bool) -> None:
    assert lines(SHOP, CACHE, slice_of(""), of_files=of_files) == [
        f"{UNLABELLED}, did you mean cache?",
        f"{LACKS}; EndpointSlice cache-a of the namespace has no such label",
    ]


def test_a_slice_without_the_label_is_legitimate_in_an_api_server_and_a_mistake_in_manifests() -> None:
    objects = (SHOP, CACHE, slice_of("cache", name="cache-b"), slice_of(""))
    assert lines(*objects) == []
    assert lines(*objects, of_files=True) == [UNLABELLED]


def test_a_service_names_the_slice_that_may_be_meant_for_it_and_not_that_of_another() -> None:
    other = service("queue", "shop", annotation="*")
    found = lines(SHOP, CACHE, other, slice_of("cahce"), slice_of("qeue", name="a"))
    assert [line.partition("; ")[2] for line in found if line.startswith("Service")] == [
        "EndpointSlice cache-a of the namespace names cahce",
        "EndpointSlice a of the namespace names qeue",
    ]
    unlike = lines(SHOP, CACHE, slice_of("redis"))
    assert unlike[0] == "EndpointSlice shop/cache-a names the Service redis, which does not exist"
    assert unlike[1] == f"{LACKS}; EndpointSlice cache-a of the namespace names redis"


def test_a_slice_of_one_family_that_names_another_service_is_at_hand() -> None:
    dual = service("cache", "shop", annotation="*", ip_families=("IPv4", "IPv6"))
    in_ipv6 = endpoint_slice("cahce", endpoint("fd00::1", "n1"), namespace="shop", name="cache-v6")
    line, lacks = lines(SHOP, dual, slice_of("cache"), in_ipv6)
    assert line.endswith("cache-v6 names the Service cahce, which does not exist, did you mean cache?")
    assert "has no EndpointSlice of addressType IPv6" in lacks
    assert lacks.endswith("=cache; EndpointSlice cache-v6 of the namespace names cahce")


def test_a_service_with_all_its_slices_is_offered_last() -> None:
    services = (service("cache", "shop"), service("caches", "shop"))
    text = lines(SHOP, *services, slice_of("caches", name="b"), slice_of("cachs"))
    assert text == ["EndpointSlice shop/cache-a names the Service cachs, which does not exist, did you mean cache?"]
    text = lines(SHOP, services[1], slice_of("caches", name="b"), slice_of("cachs"))
    assert text == ["EndpointSlice shop/cache-a names the Service cachs, which does not exist, did you mean caches?"]


def test_an_endpoints_with_the_name_of_no_service_is_named_once() -> None:
    subsets = [replace(slice_of("cahce", name=f"cahce/{at}/IPv4"), mirrored=True) for at in range(2)]
    assert lines(SHOP, CACHE, *subsets, of_files=True) == [
        "Endpoints shop/cahce has the name of no Service, did you mean cache?",
        f"{LACKS}; there is an Endpoints cahce of the namespace",
    ]


def test_the_finding_may_pass_as_the_service_of_a_slice_may_just_be_deleted() -> None:
    (one,) = (stray.finding() for stray in do_at_once(stray_steps(state_of(SHOP, slice_of("gone")))))
    assert (one.kind, one.severity, one.may_pass) == ("no_service", Severity.WARNING, True)
    assert (one.namespace, one.of_slice) == ("shop", ObjectKey("shop", "cache-a"))


def test_nothing_is_said_of_slices_whose_service_may_exist() -> None:
    assert lines(SHOP, replace(slice_of("gone"), imported=True)) == [], "it is of a ServiceImport"
    selected = listed_state(KINDS, SHOP, slice_of("gone"), all_pods=False)
    assert do_at_once(stray_steps(selected)) == (), "`labels` of kubernetes may leave out the Service"
    denied = ClusterState(frozenset(KINDS), all_pods=True)
    denied.apply(Replaced("EndpointSlice", (slice_of("gone"),)), 0)
    assert do_at_once(stray_steps(denied)) == (), "Services are not known"


def test_the_first_slices_of_the_first_namespaces_are_named() -> None:
    many = [slice_of("gone", name=f"s-{at:03}") for at in reversed(range(MAX_NAMED + 5))]
    found = do_at_once(stray_steps(state_of(SHOP, *many)))
    assert [each.name for each in found] == [f"s-{at:03}" for at in range(MAX_NAMED)]
    everywhere = [slice_of("gone", f"ns-{at}") for at in range(MAX_NAMESPACES + 5)]
    assert len(do_at_once(stray_steps(state_of(*everywhere)))) == MAX_NAMESPACES


def test_slices_and_services_are_looked_at_in_steps() -> None:
    services = [service(f"s-{at}", "shop") for at in range(2000)]
    slices = [slice_of(each.name, name=each.name) for each in services]
    assert len(list(stray_steps(state_of(*services, *slices)))) == 2000 / LOOKED_AT, (
        "without a stray Services are not looked at"
    )
    steps = len(list(stray_steps(state_of(*services, *slices, slice_of("")))))
    assert steps == 2000 / LOOKED_AT + 2000 / SERVICES + 1


def test_an_explanation_has_the_clause_of_a_service_that_lacks_slices_alone() -> None:
    state = state_of(SHOP, CACHE, slice_of("cahce"))
    assert do_at_once(at_hand_steps(state, CACHE.key)) == "; EndpointSlice cache-a of the namespace names cahce"
    state = state_of(SHOP, CACHE, slice_of("cache", name="b"), slice_of("cahce"))
    assert do_at_once(at_hand_steps(state, CACHE.key)) == ""
    assert do_at_once(at_hand_steps(state, ObjectKey("shop", "nil"))) == ""


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        pytest.param(service("cache", "shop"), True, id="headless"),
        pytest.param(service("cache", "shop", cluster_ips=["10.96.0.1"]), False, id="its ClusterIP is the answer"),
        pytest.param(service("cache", "shop", external_name="example.org"), False, id="it never has slices"),
    ],
)
def test_of_manifests_a_headless_service_without_keys_is_named_too(spec: ClusterObject, named: bool) -> None:
    assert lines(SHOP, spec, of_files=True) == ([LACKS] if named else [])
    assert lines(SHOP, spec) == [], "Pods of an API server's Service may be still to come"
