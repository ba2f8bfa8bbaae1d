"""CoreDNS as the cluster DNS, replaced by the steps of docs/operate/install.md under load, and back: nothing is lost
that a restart of CoreDNS alone would not lose, and nothing is answered wrongly. The same for a restart of topodns.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.kubelab.options import CLUSTER_DNS, FIRST_SERVICES
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster
from tests.support.kube.objects import headless, manual_slice
from tests.support.kube.operator_commands import Operator
from tests.support.kube.query_loads import Asked, Outcome, load, outcome, together
from tests.support.kube.server_pods import serving
from tests.support.kube.upstream import OUTSIDE, OUTSIDE_ADDRESS
from tests.support.kube.waiting import PATIENCE, becomes, eventually

NFTABLES_ONLY = pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)

NAME = "kubernetes.default.svc.cluster.local"
ADDRESSES = ["198.51.100.1", "198.51.100.2"]
NODES = ["node1", "node3", "node4"]
NXDOMAIN = 3
RATE = 200  # questions a second and node
PODS = "k8s-app=kube-dns"

Measure = Callable[[str, Callable[[], object]], Outcome]
Follow = Callable[[str, str, list[str]], Outcome]


@pytest.fixture(scope="module")
def questions(installed: str, cluster: Cluster) -> Iterator[list[Asked]]:
    """A ClusterIP, a headless Service, an outside name and what a search path makes of it; some over TCP."""
    with cluster.namespace() as place:
        endpoints = manual_slice("db", "db", [(address, "node1") for address in ADDRESSES])
        place.create(headless("db", app=""), endpoints)
        virtual = Asked(f"{NAME} A", CLUSTER_DNS, FIRST_SERVICES[:1])
        db = Asked(f"{place.fqdn('db')} A", CLUSTER_DNS, ADDRESSES)
        outside = Asked(f"{OUTSIDE} A", CLUSTER_DNS, [OUTSIDE_ADDRESS])
        searched = Asked(f"{OUTSIDE}.svc.cluster.local A", CLUSTER_DNS, [], NXDOMAIN)
        over_udp = [virtual, db, outside, searched]
        yield [*over_udp, *over_udp, *over_udp, virtual._replace(tcp=True), outside._replace(tcp=True)]


@pytest.fixture(scope="module")
def under_load(
    askers: Askers, cluster: Cluster, questions: list[Asked], proxy_mode: str, say: Callable[[str], None]
) -> Measure:
    """Do something and see it to its end under load: what became of the questions of all nodes."""

    def measured(what: str, action: Callable[[], object]) -> Outcome:
        with ExitStack() as stack:
            pods = [askers[node].pod for node in NODES]
            loads = [stack.enter_context(load(cluster.lab, pod, questions, RATE)) for pod in pods]
            with outcome(*loads) as became:
                action()
                eventually(lambda: not leaving(cluster), "no old pod is left")
        say(f"{proxy_mode}: {what}: {became}")
        return became

    return measured


def leaving(cluster: Cluster) -> list[str]:
    """The pods of the cluster DNS that are being deleted."""
    pods = cluster.list("Pod", "kube-system", PODS)
    return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" in pod["metadata"]]


def restart(operator: Operator, deployment: str) -> None:
    operator.run("kubectl", "--namespace", "kube-system", "rollout", "restart", f"deployment/{deployment}")
    operator.run("kubectl", "--namespace", "kube-system", "rollout", "status", f"deployment/{deployment}")


@pytest.fixture(scope="module")
def follow(under_load: Measure, cluster: Cluster, operator: Operator) -> Follow:
    """Take a step of a document, after which these are to serve; what became of the questions meanwhile."""

    def follow(document: str, name: str, then: list[str]) -> Outcome:
        def step() -> None:
            operator.follow(document, name)
            becomes(lambda: serving(cluster), then)

        return under_load(f"{document}, {name}", step)

    return follow


@pytest.fixture(scope="module")
def beside(kubeadm: None, cluster: Cluster, follow: Follow) -> Outcome:
    """The cost of a trial beside CoreDNS."""
    eventually(lambda: not leaving(cluster), "topodns has gone")
    return follow("docs/operate/install.md", "beside", ["coredns"] * 2)


@pytest.fixture(scope="module")
def coredns(beside: Outcome, under_load: Measure, operator: Operator) -> Outcome:
    """The cost of a restart of CoreDNS, from ports that have asked before, as in a cluster that is used."""
    return under_load("restart of CoreDNS", lambda: restart(operator, "coredns"))


def test_beside_coredns_it_answers_and_nothing_changes_for_anybody(
    beside: Outcome, cluster: Cluster, askers: Askers
) -> None:
    found = cluster.read("Service", "kube-system", "topodns")
    assert found is not None
    assert askers["node2"].addresses(NAME, to=found["spec"]["clusterIP"]) == set(FIRST_SERVICES[:1])
    assert serving(cluster, "topodns") == ["topodns"] * 2
    assert (beside.lost, beside.failed, beside.wrong) == (0, 0, 0), beside.problems


@NFTABLES_ONLY
def test_coredns_does_not_go_where_topodns_is_not_in_its_place(
    beside: Outcome, operator: Operator, cluster: Cluster
) -> None:
    assert operator.paste("docs/operate/install.md", "scale-coredns").wait(PATIENCE) != 0
    assert selector(cluster) == {"k8s-app": "kube-dns"}
    assert serving(cluster) == ["coredns"] * 2


def selector(cluster: Cluster) -> object:
    found = cluster.read("Service", "kube-system", "kube-dns")
    assert found is not None
    return found["spec"]["selector"]


@pytest.fixture(scope="module")
def in_its_place(coredns: Outcome, follow: Follow) -> Outcome:
    """topodns is the cluster DNS; what that has cost."""
    both = follow("docs/operate/install.md", "in-its-place", ["coredns"] * 2 + ["topodns"] * 2)
    return together(both, follow("docs/operate/install.md", "scale-coredns", ["topodns"] * 2))


def costs_no_more(became: Outcome, restart: Outcome) -> None:
    assert became.asked > RATE
    assert (became.failed, became.wrong) == (0, 0), became.problems
    assert became.lost <= restart.lost, became.problems


def test_taking_its_place_costs_no_more_than_a_restart_of_coredns(in_its_place: Outcome, coredns: Outcome) -> None:
    costs_no_more(in_its_place, coredns)


@NFTABLES_ONLY
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_step_that_is_interrupted_leaves_the_service_as_it_was(
    in_its_place: Outcome, operator: Operator, cluster: Cluster, sent: signal.Signals
) -> None:
    shell = operator.paste("docs/operate/install.md", "scale-coredns")
    try:
        eventually(lambda: selector(cluster) != {"k8s-app": "kube-dns"}, "the Service finds topodns alone")
        os.killpg(shell.pid, sent)
        assert shell.wait(PATIENCE) != 0
        becomes(lambda: selector(cluster), {"k8s-app": "kube-dns"})
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


@NFTABLES_ONLY
def test_neither_does_a_restart_of_topodns(
    in_its_place: Outcome, coredns: Outcome, under_load: Measure, operator: Operator
) -> None:
    costs_no_more(under_load("restart of topodns", lambda: restart(operator, "topodns")), coredns)


def test_neither_does_the_way_back(in_its_place: Outcome, coredns: Outcome, follow: Follow, cluster: Cluster) -> None:
    costs_no_more(follow("docs/operate/install.md", "way-back", ["coredns"] * 2), coredns)
    assert selector(cluster) == {"k8s-app": "kube-dns"}
