"""docs/operate/quick-start.md where CoreDNS is the cluster DNS: step by step, and the answers of each node.

In order: each test finds the cluster as the one before it has left it.
"""

import pytest

from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.expected_nearest import Answers, of_everybody, of_zone
from tests.support.kube.operator_commands import Operator
from tests.support.kube.server_pods import serving
from tests.support.kube.waiting import becomes, eventually

pytestmark = pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)

SYSTEM = "kube-system"
NOTHING = {"[Errno", "-5]", "No", "address", "associated", "with", "hostname"}


@pytest.fixture(scope="module")
def started(kubeadm: None, cluster: Cluster, operator: Operator) -> Place:
    """Steps 1 and 2: the namespace of `web` and `shell`."""
    operator.follow("docs/operate/quick-start.md", "quick-start-install", "quick-start-workload")
    return Place(cluster, "near")


def got(operator: Operator) -> Answers:
    """The last lines that each node has printed."""
    lines = operator.follow("docs/operate/quick-start.md", "quick-start-look").splitlines()
    return {node: set(addresses) for node, *addresses in map(str.split, lines)}


def test_without_keys_every_node_gets_all_endpoints(started: Place, cluster: Cluster, operator: Operator) -> None:
    web = started.pods_once_ready("web", 3)
    assert {cluster.topology_zones[pod.node] for pod in web} == {"a", "b", "c"}
    becomes(lambda: got(operator), of_everybody(cluster, web))
    assert serving(cluster) == ["coredns"] * 2


def test_with_a_soft_list_each_node_gets_the_endpoints_of_its_own_zone(
    started: Place, cluster: Cluster, operator: Operator
) -> None:
    operator.follow("docs/operate/quick-start.md", "quick-start-keys")
    becomes(lambda: got(operator), of_zone(cluster, started.pods_once_ready("web", 3)))


def test_with_a_hard_list_a_client_without_near_endpoints_gets_nothing_and_explain_says_why(
    started: Place, cluster: Cluster, operator: Operator
) -> None:
    operator.follow("docs/operate/quick-start.md", "quick-start-hard")
    (web,) = started.pods_once_ready("web", 1)
    near = of_zone(cluster, [web])
    becomes(lambda: got(operator), {node: addresses or NOTHING for node, addresses in near.items()})
    explained = operator.follow("docs/operate/quick-start.md", "quick-start-explain")
    far = min(node for node, addresses in near.items() if not addresses)
    assert f"client   any on node {far} (as given)\nname     web.near.svc.cluster.local. A\n" in explained
    assert "NODATA for this client" in explained
    assert f"on node {web.node} (by a Pod)\n" in explained
    assert "1 matching  <- wins\n" in explained
    assert f" IN A {web.ip}\n" in explained
    plugin = operator.follow("docs/operate/kubectl-plugin.md", "plugin-explain", NEAR=web.node, FAR=far)
    assert "NODATA for this client" in plugin
    assert f" IN A {web.ip}\n" in plugin
    located = operator.follow("docs/operate/kubectl-plugin.md", "plugin-who", "plugin-json", FAR=far)
    assert f" on {far}, by the API server\n" in located
    assert '"because": "no method of `locate` has a result' in located
    assert "SHARE  NAME\n" in operator.follow("docs/operate/kubectl-plugin.md", "plugin-top")
    audited = operator.follow("docs/operate/kubectl-plugin.md", "plugin-audit")
    assert "uncovered" in audited
    assert "\n  - error   uncovered: " in audited
    counted = operator.follow("docs/operate/quick-start.md", "quick-start-metrics")
    assert 'topodns_misses_total{name="near/web",outcome="no_match"}' in counted
    assert 'topodns_selections_total{key="topology.kubernetes.io/zone",outcome="matched"}' in counted


def test_in_the_place_of_coredns_every_pod_gets_the_near_endpoints(
    started: Place, cluster: Cluster, operator: Operator
) -> None:
    operator.follow("docs/operate/quick-start.md", "quick-start-replace")
    becomes(lambda: serving(cluster), ["topodns"] * 2)
    becomes(lambda: got(operator), of_zone(cluster, started.pods_once_ready("web", 3)))


def test_taken_away_nothing_is_left_of_it(started: Place, cluster: Cluster, operator: Operator) -> None:
    operator.follow("docs/operate/quick-start.md", "quick-start-remove")
    becomes(lambda: serving(cluster), ["coredns"] * 2)
    eventually(lambda: cluster.read("Namespace", "", "near") is None, "the namespace has gone")
    assert operator.run("helm", "--namespace", SYSTEM, "list", "--short") == ""
    left = ("pod/topodns-ask", "lease/topodns-events", "--ignore-not-found")
    assert operator.run("kubectl", "--namespace", SYSTEM, "get", *left) == ""
