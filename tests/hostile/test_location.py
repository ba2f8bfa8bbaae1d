"""A user who may write EndpointSlices in one namespace, or query from the address of a node, moves no other client."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.api_objects import Object, endpoint_slice, namespace, node, node_locator, pod, pod_locator, service
from tests.support.dns_messages import Opt, Reply, node_identity
from tests.support.fake_api.server import FakeApi, running
from tests.support.server_process import Server, own_address, serving, until
from tests.support.steady_client import MIN_ASKED, victim

HOSTNAME = "kubernetes.io/hostname"
NODES = [node(f"n{at}", "a", f"127.61.0.{at}", f"127.62.{at}.0/24") for at in range(1, 5)]
VICTIM, BARE = "127.62.1.9", "127.62.1.200"  # two Pods on n1
EVERYBODY = ["127.61.0.1", "127.62.1.1", VICTIM, BARE]  # on n1: its own address, its gateway, its Pods
MOST_CPU = 0.1  # seconds
CONTRADICTED = "topodns_slice_contradictions"
NEAR = "near.default.svc.cluster.local A"
SOFT = "soft.default.svc.cluster.local A"
ENDPOINTS = {f"127.62.{at}.2": f"n{at}" for at in range(1, 5)}
CLUSTER: Sequence[Object] = (
    *(namespace(name) for name in ("default", "apps", "evil")),
    *NODES,
    service("near", keys=HOSTNAME),
    endpoint_slice("near", ENDPOINTS),
    service("soft", keys=f"{HOSTNAME},*"),
    endpoint_slice("soft", ENDPOINTS),
    *(pod(f"pod-{address.replace('.', '-')}", address, at) for address, at in ENDPOINTS.items()),
)
PODS = (pod("victim", VICTIM, "n1", "apps"), pod("bare", BARE, "n1", "apps"))

_COREFILE = """
. {
    bind HERE
    ready HERE:8181
    prometheus HERE:9153
    kubernetes cluster.local {
        endpoint URL
    }
    topology {
        OPTIONS
    }
}
"""


@contextmanager
def cluster(directory: Path, *more: Object, options: str = "") -> Iterator[tuple[FakeApi, Server]]:
    with (
        running((*CLUSTER, *more), own_address()) as api,
        serving(directory, _COREFILE.replace("URL", api.url).replace("OPTIONS", options)) as server,
    ):
        yield api, server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeApi, Server]]:
    """As it is by default, with the two Pods; no test leaves a slice behind."""
    with cluster(tmp_path_factory.mktemp("shared"), *PODS) as shared:
        yield shared


def forged(service_name: str, addresses: Sequence[str], node_name: str = "n2") -> Object:
    """A slice in the namespace of the forger that has these addresses on this node."""
    return endpoint_slice(service_name, dict.fromkeys(addresses, node_name), "evil")


def test_slices_of_one_namespace_move_no_client_of_another(shared: tuple[FakeApi, Server]) -> None:
    api, server = shared
    forgeries = [forged(f"x{at}", EVERYBODY) for at in range(20)]
    with victim(server, NEAR, "127.62.1.2", source=VICTIM) as fate:
        api.put(*forgeries, pod("mine", "127.62.2.7", "n2", "evil"))
        until(lambda: server.metric(CONTRADICTED) >= 20, server.output())
        asked = fate.asked
        until(lambda: fate.asked > asked + 5, "more questions")
        got = {address: server.ask(NEAR, address).data for address in EVERYBODY}
    assert (fate.lost, fate.wrong) == (0, []), fate
    assert set(map(tuple, got.values())) == {("127.62.1.2",)}, got
    api.delete(*forgeries)
    until(lambda: not server.metric(CONTRADICTED), "no forgery is left")


def test_a_slice_that_is_contradicted_is_named_once_in_the_log_and_in_a_metric(
    shared: tuple[FakeApi, Server],
) -> None:
    api, server = shared
    api.put(forged("log", [VICTIM]))
    line = server.wait_for_line("EndpointSlice evil/log-1")
    assert "Pod apps/victim has its address on node n1; it locates no client" in line
    assert server.metric(CONTRADICTED, namespace="evil", slice="log-1") == 1
    api.put(forged("more", [VICTIM]))
    server.wait_for_line("EndpointSlice evil/more-1")
    assert len(server.lines("EndpointSlice evil/log-1")) == 1
    api.delete(forged("log", []), forged("more", []))
    until(lambda: not server.metric(CONTRADICTED), "none that is left")


def test_without_pods_one_namespace_cannot_end_the_proof_of_pod_cidrs(tmp_path: Path) -> None:
    """990 endpoints of two namespaces prove them; a forger's thousand prove nothing."""
    genuine = [
        endpoint_slice("web", {f"127.62.{at}.{host}": f"n{at}" for host in range(first, first + 60)}, name, f"web-{at}")
        for at in range(1, 5)
        for name, first in (("apps", 20), ("more", 100))
    ]
    with cluster(tmp_path, *genuine, options="locate nodes podcidr slices") as (api, server):
        with victim(server, NEAR, "127.62.1.2", source=BARE) as fate:
            for at in range(1, 5):
                api.put(forged(f"x{at}", [f"127.62.{at % 4 + 1}.{host}" for host in range(2, 252)], f"n{at}"))
            until(lambda: server.metric(CONTRADICTED) >= 4, server.output())
            asked = fate.asked
            until(lambda: fate.asked > asked + 5, "more questions")
        assert (fate.lost, fate.wrong) == (0, []), fate
        assert server.ask(NEAR, "127.62.2.30").data == ["127.62.2.2"]


def test_an_identity_sent_from_a_node_names_that_node_or_none(shared: tuple[FakeApi, Server], tmp_path: Path) -> None:
    def got(server: Server, source: str, name: str) -> list[str]:
        return server.ask(NEAR, source, Opt(options=[node_identity(name)])).data

    _, server = shared
    assert got(server, "127.61.0.1", "n1") == ["127.62.1.2"]
    assert got(server, "127.61.0.1", "n2") == ["127.62.1.2"]
    assert got(server, VICTIM, "n2") == ["127.62.1.2"]
    with cluster(tmp_path, *PODS, options="trust 127.61.0.1") as (_, server):
        assert got(server, "127.61.0.1", "n2") == ["127.62.2.2"]


def test_a_pod_that_asks_before_its_object_is_known_gets_the_endpoint_of_its_own_node(
    shared: tuple[FakeApi, Server],
) -> None:
    api, server = shared
    for at in range(10, 20):  # the API server may be slow, as the machine may be: not every time
        address, replies = f"127.62.3.{at}", list[Reply]()
        asking = threading.Thread(target=lambda: replies.append(server.ask(NEAR, address)))  # noqa: B023
        asking.start()
        api.put(pod(f"new-{at}", address, "n3"))
        asking.join()
        if server.metric("topodns_pod_waits_total", outcome="arrived"):
            break
    assert replies[0].data == ["127.62.3.2"], server.output()


def test_strangers_cannot_use_up_the_wait_of_new_pods_nor_are_slow_twice(shared: tuple[FakeApi, Server]) -> None:
    """Ten addresses in a flood of 300 questions each."""
    _, server = shared
    strangers = [f"127.99.0.{at}" for at in range(1, 11)]
    before = server.metric("topodns_pod_waits_total", outcome="expired")

    def flood(source: str) -> None:
        for _ in range(300):
            server.ask(SOFT, source)

    with victim(server, NEAR, "127.62.1.2", source=VICTIM) as fate:
        threads = [threading.Thread(target=flood, args=(source,)) for source in strangers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        until(lambda: fate.asked >= 20, "questions asked")
    assert (fate.lost, fate.wrong) == (0, []), fate
    assert server.metric("topodns_pod_waits_total", outcome="expired") - before == len(strangers)


def test_a_slice_of_a_hundred_thousand_addresses_delays_no_client(shared: tuple[FakeApi, Server]) -> None:
    """The API takes a thousand endpoints of a hundred addresses each; taking them in took 1 to 2 s."""
    api, server = shared
    huge = forged("huge", [])
    huge["endpoints"] = [
        {"addresses": [f"10.{at >> 8}.{at & 255}.{each}" for each in range(100)]} for at in range(1000)
    ]
    with victim(server, NEAR, "127.62.1.2", source=VICTIM) as fate:
        api.put(huge)
        server.wait_for_line("EndpointSlice evil/huge-1: endpoints: expected at most 2000 addresses, found 100000")
        until(lambda: fate.asked >= MIN_ASKED, "questions asked")
    assert (fate.lost, fate.wrong) == (0, []), fate
    assert fate.cpu(99) <= MOST_CPU, fate
    api.delete(huge)


def test_locators_by_the_thousand_and_a_huge_one_delay_no_client(tmp_path: Path) -> None:
    """As from a user who may write them, at an API server whose schema is another one."""
    many = [pod_locator(f"p{at}", ["10.9.9.9"], "n2", "evil") for at in range(2000)]
    huge = node_locator("n9", [f"10.{at >> 16}.{at >> 8 & 255}.{at & 255}" for at in range(100_000)])
    with cluster(tmp_path, *PODS, options="locate nodes podcidr pods nodelocator podlocator") as (api, server):
        with victim(server, NEAR, "127.62.1.2", source=VICTIM) as fate:
            api.put(huge, *many)
            server.wait_for_line("NodeLocator n9: spec.podIPs[1024] is beyond the limit of the field; ignored")
            until(lambda: server.metric("topodns_state_objects", kind="PodLocator") == 2000, server.output())
            server.wait_for_line("says that 10.9.9.9 is on node n2, but more than 100 locators have its address")
            until(lambda: fate.asked >= MIN_ASKED, "questions asked")
        assert (fate.lost, fate.wrong) == (0, []), fate
        assert fate.cpu(99) <= MOST_CPU, fate
        assert server.metric("topodns_locator_refused_addresses", reason="too_many") == 2001 - 1024  # no more are read
