"""Deployments and StatefulSets behind headless Services, moved by the real controllers and kubelets."""

import pytest

from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Place
from tests.support.kube.objects import headless, pause_container, pod, pod_spec, spread, switched_container, workload
from tests.support.kube.server_pods import Server
from tests.support.kube.topology_key_services import expected, members, seen, services
from tests.support.kube.waiting import becomes

PROGRAMMING_LATENCY = "coredns_kubernetes_dns_programming_duration_seconds"


def test_each_client_of_a_deployment_gets_exactly_the_pods_of_its_zone_and_of_its_node(
    place: Place, askers: Askers
) -> None:
    place.create(
        *services("web"),
        workload("Deployment", "web", {"replicas": 6}, pod_spec(pause_container(), **spread("web"))),
    )
    pods = place.pods_once_ready("web", 6)
    assert {pod.node for pod in pods} == set(place.cluster.nodes)
    becomes(lambda: seen(place, askers, "web"), expected(place, "web"))
    place.scale("Deployment", "web", 2)
    place.pods_once_ready("web", 2)
    becomes(lambda: seen(place, askers, "web"), expected(place, "web"))
    place.scale("Deployment", "web", 0)
    place.pods_once_ready("web", 0)
    becomes(lambda: seen(place, askers, "web"), expected(place, "web"))


def test_an_unready_pod_is_in_no_answer_and_the_next_key_applies(place: Place, askers: Askers) -> None:
    place.create(
        *services("web"),
        *(pod(f"web-{node}", "web", switched_container(), node) for node in ("node1", "node2", "node3")),
    )
    pods = {pod.node: pod for pod in place.pods_once_ready("web", 3)}
    becomes(lambda: seen(place, askers, "web"), expected(place, "web"))
    place.run(pods["node1"], "rm", "-f", "/tmp/ready")
    becomes(lambda: len(place.ready_pods("web")), 2)
    becomes(lambda: seen(place, askers, "web"), expected(place, "web"))
    assert askers["node1"].addresses(place.fqdn("web-soft")) == {pods["node2"].ip}  # its zone's
    place.run(pods["node1"], "touch", "/tmp/ready")
    place.pods_once_ready("web", 3)
    becomes(lambda: seen(place, askers, "web"), expected(place, "web"))


def test_a_terminating_pod_is_gone_from_answers_while_it_still_runs(place: Place, askers: Askers) -> None:
    place.create(
        *services("web"),
        pod("stays", "web", switched_container(), "node3"),
        pod("goes", "web", switched_container(deaf=True), "node4", grace=60),
    )
    place.pods_once_ready("web", 2)
    becomes(lambda: seen(place, askers, "web"), expected(place, "web"))
    place.delete("Pod", "goes")
    becomes(lambda: len(place.ready_pods("web")), 1)
    becomes(lambda: seen(place, askers, "web"), expected(place, "web"))
    assert [pod.name for pod in place.pods("web") if pod.terminating] == ["goes"]
    assert askers["node4"].addresses(place.fqdn("web-near")) == set()  # NODATA: others still get some
    place.delete("Pod", "goes", grace=0)


def test_a_deleted_pod_is_replaced_in_answers_by_its_successor(place: Place, askers: Askers) -> None:
    place.create(*services("web"), workload("Deployment", "web", {"replicas": 2}, pod_spec(pause_container())))
    before = place.pods_once_ready("web", 2)
    place.delete("Pod", before[0].name)
    becomes(lambda: before[0].name in {pod.name for pod in place.pods("web")}, False)
    after = place.pods_once_ready("web", 2)
    assert {pod.name for pod in after} != {pod.name for pod in before}
    becomes(lambda: seen(place, askers, "web"), expected(place, "web"))


def test_the_time_from_the_controllers_to_the_answer_is_measured(place: Place, dns: Server, askers: Askers) -> None:
    def measured() -> float:
        return dns.metric(f"{PROGRAMMING_LATENCY}_count", service_kind="headless_with_selector")

    before = measured()
    place.create(headless("web"), pod("web", "web", pause_container(), "node3"))
    (only,) = place.pods_once_ready("web", 1)
    becomes(lambda: askers["node1"].addresses(place.fqdn("web")), {only.ip})
    assert measured() > before


@pytest.fixture
def stateful_set(place: Place) -> Place:
    """`db`, three members on three nodes, with `db` as its governing Service."""
    place.create(
        *services("db"),
        workload(
            "StatefulSet",
            "db",
            {"replicas": 3, "serviceName": "db", "podManagementPolicy": "Parallel"},
            pod_spec(pause_container(), **spread("db")),
        ),
    )
    place.pods_once_ready("db", 3)
    return place


def test_a_stateful_set_has_names_for_exactly_the_members_it_has(stateful_set: Place, askers: Askers) -> None:
    place = stateful_set
    for number in (3, 4, 1):
        place.scale("StatefulSet", "db", number)
        pods = place.pods_once_ready("db", number)
        becomes(lambda: seen(place, askers, "db"), expected(place, "db"))
        missing = {f"db-{i}": {"NXDOMAIN"} for i in range(number, 4)}
        becomes(lambda: members(place, askers, "db", 4), missing | {pod.name: {pod.ip} for pod in pods})


def test_a_rolled_stateful_set_is_never_without_an_answer_nor_has_a_strangers(
    stateful_set: Place, askers: Askers
) -> None:
    place, asker = stateful_set, askers["node1"]
    becomes(lambda: asker.addresses(place.fqdn("db")), {pod.ip for pod in place.pods("db")})
    old = {pod.ip for pod in place.pods("db")}
    known = set(old)
    template = {"metadata": {"annotations": {"rolled": "yes"}}}
    place.patch("StatefulSet", "db", {"spec": {"template": template}})

    def rolled() -> bool:
        before = place.pods("db")
        got = asker.addresses(place.fqdn("db"))
        after = place.pods("db")
        known.update(address for pod in [*before, *after] for address in pod.ips)
        assert got, "nothing"
        assert got <= known
        return all(pod.ready and pod.ip not in old for pod in after) and len(after) == 3

    becomes(rolled, True)
    becomes(lambda: seen(place, askers, "db"), expected(place, "db"))
    becomes(lambda: members(place, askers, "db", 3), {pod.name: {pod.ip} for pod in place.pods("db")})
