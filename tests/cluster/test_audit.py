"""`topodns audit` of a real Kubernetes: by a kubeconfig, and by the server in a Pod."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from tests.kubelab.lab import Lab
from tests.support.kube.cluster import Place
from tests.support.kube.objects import ZONE, headless, manual_slice
from tests.support.kube.server_pods import NAMESPACE, Server
from tests.support.kube.waiting import becomes
from tests.support.server_process import topodns

Row = Mapping[str, Any]


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

    def in_pod() -> dict[str, Row]:
        command = lab.kubectl("--namespace", NAMESPACE, "exec", dns.name, "--", "/topodns", "audit", "--json")
        printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
        return services_of(json.loads(printed), place)

    becomes(lambda: sorted(in_pod()), ["hard", "soft"])
    ended = topodns("audit", "--kubeconfig", str(lab.kubeconfig), "--json")
    assert (ended.returncode, ended.stderr) == (1, "")
    outside = services_of(json.loads(ended.stdout), place)
    assert {name: facts(each) for name, each in outside.items()} == {
        "hard": ([ZONE], 2, 4, 2, [("error", "uncovered")]),
        "soft": ([ZONE, "*"], 1, 4, 4, [("warning", "single_point")]),
    }
    assert {name: facts(each) for name, each in in_pod().items()} == {
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
