"""`topodns audit` of a real Kubernetes: by a kubeconfig, and by the server in a Pod."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pytest

from tests.kubelab.lab import Lab
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.moving_pod import PLAIN, run_unplayed, unplayed_nodes
from tests.support.kube.objects import ZONE, headless, manual_slice, pause_container, pod_spec, workload
from tests.support.kube.server_pods import NAMESPACE, Server
from tests.support.kube.waiting import becomes
from tests.support.server_process import topodns

Row = Mapping[str, Any]
Found = tuple[str, str, str]  # of a finding: its severity, kind and text

REUSED, OF_NO_NODE = "10.99.0.8", "10.99.0.9"  # addresses outside of every podCIDR

GOVERNING: Final = (
    "topology keys on the governing Service of a StatefulSet hide its members from each other when they look up the "
    "Service's name; give clients a headless Service of their own"
)
ON_NO_NODE: Final = "cannot be located, as they are on no Node"
SEVERAL_NODES: Final = "cannot be located, as Pods on several Nodes have their address"
HARD: Final = "; hard lists give them no endpoint"
BEHIND_NO_SERVICE: Final = (
    f"Pods behind no Service cannot be located on 2 Nodes without podCIDR, as Pods are not known: {', '.join(PLAIN)}"
)


def by_kubeconfig(lab: Lab) -> Row:
    ended = topodns("audit", "--kubeconfig", str(lab.kubeconfig), "--json")
    assert (ended.returncode, ended.stderr) == (1, "")
    return read(ended.stdout)


def in_pod(lab: Lab, dns: Server) -> Row:
    command = lab.kubectl("--namespace", NAMESPACE, "exec", dns.name, "--", "/topodns", "audit", "--json")
    return read(subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout)


def read(printed: str) -> Row:
    document: Row = json.loads(printed)
    return document


def services_of(document: Row, place: Place) -> dict[str, Row]:
    """The Services of this namespace by name."""
    [cluster] = document["clusters"]
    found = {each["service"]: each for each in cluster["services"]}
    return {name.partition("/")[2]: each for name, each in found.items() if name.startswith(f"{place.name}/")}


def facts(row: Row) -> tuple[Sequence[str], int, int, int, list[tuple[str, str]]]:
    """What does not depend on the source."""
    found = [(each["severity"], each["kind"]) for each in row["findings"]]
    return row["keys"], row["endpoints"], row["nodes"], row["covered"], found


def test_an_audit_by_kubeconfig_and_one_by_the_server_in_its_pod_agree(lab: Lab, dns: Server, place: Place) -> None:
    place.create(
        headless("hard", keys=ZONE, app=""),
        manual_slice("hard", "hard", [("198.51.100.1", "node1"), ("198.51.100.2", "node2")]),
        headless("soft", keys=f"{ZONE},*", app=""),
        manual_slice("soft", "soft", [("198.51.100.3", "node3")]),
        headless("plain", app=""),
    )

    def by_server() -> dict[str, Row]:
        return services_of(in_pod(lab, dns), place)

    becomes(lambda: sorted(by_server()), ["hard", "soft"])
    outside = services_of(by_kubeconfig(lab), place)
    assert {name: facts(each) for name, each in outside.items()} == {
        "hard": ([ZONE], 2, 4, 2, [("error", "uncovered")]),
        "soft": ([ZONE, "*"], 1, 4, 4, [("warning", "single_point")]),
    }
    assert {name: facts(each) for name, each in by_server().items()} == {
        name: facts(each) for name, each in outside.items()
    }


def test_a_what_if_is_computed_of_the_cluster_of_a_kubeconfig(lab: Lab, place: Place) -> None:
    place.create(
        headless("hard", keys=ZONE, app=""),
        manual_slice("hard", "hard", [("198.51.100.1", "node1"), ("198.51.100.3", "node3"), ("198.51.100.4", "node4")]),
    )
    change = f"keys={place.name}/hard:none"
    ended = topodns("audit", "--kubeconfig", str(lab.kubeconfig), "--what-if", "node=node3:down", "--what-if", change)
    assert f"what if node=node3:down and {change}\n" in ended.stdout
    assert f"\n{place.name}/hard\n    keys {ZONE} -> none\n    ready endpoints 3 -> 2" in ended.stdout
    unknown = topodns("audit", "--kubeconfig", str(lab.kubeconfig), "--what-if", "zone=d:down")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("no zone is named 'd'")


def test_keys_on_the_governing_service_of_a_statefulset_are_found_by_kubeconfig_and_by_the_server(
    lab: Lab, dns: Server, place: Place
) -> None:
    """The server watches no StatefulSets: it knows the Service by the names of its endpoints."""
    members = {"replicas": 2, "serviceName": "db", "podManagementPolicy": "Parallel"}
    place.create(
        headless("db", keys=ZONE),
        headless("db-near", keys=ZONE, app="db"),
        workload("StatefulSet", "db", members, pod_spec(pause_container())),
    )
    place.pods_once_ready("db", 2)
    found = {"db": [("warning", "governing", GOVERNING)], "db-near": []}
    becomes(lambda: governing(outside(lab, place)), found)
    becomes(lambda: governing(services_of(in_pod(lab, dns), place)), found)


def governing(services: Mapping[str, Row]) -> dict[str, list[Found]]:
    """The findings of this kind, by Service."""
    return {name: [found for found in findings_of(each) if found[1] == "governing"] for name, each in services.items()}


def outside(lab: Lab, place: Place) -> dict[str, Row]:
    return services_of(by_kubeconfig(lab), place)


def findings_of(row: Row) -> list[Found]:
    return [(each["severity"], each["kind"], each["text"]) for each in row["findings"]]


def unlocated(document: Row) -> list[tuple[str, str]]:
    """Severity and text of the findings about clients that cannot be located."""
    [cluster] = document["clusters"]
    return [(each["severity"], each["text"]) for each in cluster["others"] if each["kind"] == "unlocated"]


@pytest.fixture
def plain_nodes(cluster: Cluster) -> Iterator[None]:
    with unplayed_nodes(cluster):
        yield


def test_clients_that_cannot_be_located_are_found_with_the_reason(
    lab: Lab, dns: Server, plain_nodes: None, place: Place
) -> None:
    """By kubeconfig the Pods themselves; by the server, which watches no Pods, the Nodes on which they would be."""
    pods = {"twin-0": (PLAIN[0], REUSED), "twin-1": (PLAIN[1], REUSED), "astray": ("", OF_NO_NODE)}
    place.create(headless("hard", keys=ZONE, app=""), manual_slice("hard", "hard", [("198.51.100.1", "node1")]))
    try:
        for name, (node, address) in pods.items():
            run_unplayed(place, name, node, address, schedulerName="none")
        assert unlocated(by_kubeconfig(lab)) == [
            ("error", f"1 Pod {ON_NO_NODE}{HARD}: {place.name}/astray"),
            ("error", f"2 Pods {SEVERAL_NODES}{HARD}: {place.name}/twin-0, {place.name}/twin-1"),
        ]
        becomes(lambda: unlocated(in_pod(lab, dns)), [("warning", BEHIND_NO_SERVICE)])
    finally:
        for name in pods:
            place.delete("Pod", name, grace=0)
