"""Answers by the client's Pod: dig in Pods asks the cluster DNS itself, and a node cache that names them to it."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import pytest

from tests.support.kube.chart_servers import chart_server, chart_servers
from tests.support.kube.cluster import Cluster, Place, PodView, view
from tests.support.kube.dnstools import DNSTOOLS_IMAGE
from tests.support.kube.node_caches import NodeCaches
from tests.support.kube.objects import Object, headless, manual_slice, pod, sleeping_container
from tests.support.kube.operator_commands import Operator
from tests.support.kube.server_pods import NAMESPACE
from tests.support.kube.waiting import becomes, eventually

pytestmark = pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)

NODE: Final = "node1"  # of all Pods that ask, so that they share a node cache
CACHE: Final = "169.254.20.10"  # of the node cache alone, by the chart's default
FRONT, BACK, STRANGER = "shop/front", "shop/back", "bank/front"  # Pods, each labelled `tier` with its name
GUARDED: Final = "vault"  # the namespace whose names `acl` guards
TENANT: Final = "tenant.cluster.local TXT"
TENANTS: Final = {FRONT: '"others"', BACK: '"others"', STRANGER: '"bank"'}
FORMAT: Final = '"{/kubernetes/client-namespace}/{/kubernetes/client-pod-name} {/kubernetes/client-label/tier} {name}"'
ROUNDS: Final = 5

Answers = dict[str, str]  # by Pod


def plugin(name: str, parameters: str = "", block: str = "") -> Object:
    return {"name": name, "parameters": parameters, "configBlock": block}


def server_for(tenant: str, *plugins: Object) -> Object:
    """The chart's server block, which reads metadata of clients and calls them this tenant."""
    acl = "allow namespace shop label tier=front\nblock"
    added = [
        plugin("metadata"),
        plugin("acl", f"{GUARDED}.svc.cluster.local", acl),
        plugin("log", f". {FORMAT}"),
        plugin("template", "IN TXT tenant.cluster.local", f'answer "{{{{ .Name }}}} 30 IN TXT {tenant}"'),
    ]
    server = chart_server()
    return server | {"plugins": [*server["plugins"], *added, *plugins]}


@pytest.fixture(scope="module")
def caches(
    installed: str, cluster: Cluster, operator: Operator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeCaches]:
    """On every node, of a cluster DNS with a view for namespace `bank`; in the end the release is as before."""
    bank = plugin("view", "bank", "expr metadata('kubernetes/client-namespace') == 'bank'")
    servers = [server_for("bank", bank), server_for("others")]
    caches = NodeCaches(cluster, operator)
    with chart_servers(operator, tmp_path_factory.mktemp("values"), servers):
        caches.switch_on("docs/operate/install.md", "node-cache")
        yield caches
        caches.switch_off()


class Tenants:
    """The Pods that ask, and who they are to a server."""

    def __init__(self, places: Mapping[str, Place]) -> None:
        self.cluster = places["shop"].cluster
        self._places = places

    def pod(self, name: str) -> PodView:
        namespace, _, own = name.partition("/")
        (found,) = self._places[namespace].ready_pods(own)
        return found

    def dig(self, name: str, to: str, question: str) -> str:
        """The data of the records that this Pod gets, else the status."""
        asked = (f"@{to}", *question.split())
        printed = self._places["shop"].run(self.pod(name), "dig", "+noall", "+comments", "+answer", *asked)
        found = re.findall(r"^[^;\s].*\sIN\s\S+\s+(.*)$", printed, re.MULTILINE)
        (status,) = re.findall(r"status: (\w+)", printed)
        return " ".join(found) or status

    def answers(self, to: str, question: str) -> Answers:
        return {name: self.dig(name, to, question) for name in TENANTS}

    def label(self, name: str, tier: str) -> None:
        namespace, _, own = name.partition("/")
        self._places[namespace].patch("Pod", own, {"metadata": {"labels": {"tier": tier}}})


@pytest.fixture(scope="module")
def tenants(cluster: Cluster) -> Iterator[Tenants]:
    with cluster.namespace("shop") as shop, cluster.namespace("bank") as bank:
        places = {"shop": shop, "bank": bank}
        for name in TENANTS:
            namespace, _, own = name.partition("/")
            made = pod(own, own, sleeping_container(DNSTOOLS_IMAGE), NODE)
            made["metadata"]["labels"]["tier"] = own
            places[namespace].create(made)
        for name in TENANTS:
            namespace, _, own = name.partition("/")
            places[namespace].pods_once_ready(own, 1)
        yield Tenants(places)


@pytest.fixture(params=["cluster DNS", "node cache"])
def to(request: pytest.FixtureRequest, caches: NodeCaches) -> str:
    """The address that is asked: of a Pod of the cluster DNS, or of the node cache."""
    return CACHE if request.param == "node cache" else dns_pods(caches.cluster)[0].ip


def dns_pods(cluster: Cluster) -> list[PodView]:
    return [each for each in map(view, cluster.list("Pod", NAMESPACE, "k8s-app=kube-dns")) if not each.terminating]


def logged(cluster: Cluster) -> str:
    return "".join(cluster.logs(NAMESPACE, each.name) for each in dns_pods(cluster))


@pytest.fixture(scope="module")
def vault(cluster: Cluster) -> Iterator[str]:
    """A name that `acl` guards."""
    with cluster.namespace(GUARDED) as place:
        place.create(headless("gold", app=""), manual_slice("gold", "gold", [("198.51.100.1", NODE)]))
        yield f"{place.fqdn('gold')} A"


def test_a_view_is_for_the_pods_of_its_namespace_whichever_pod_is_first(to: str, tenants: Tenants) -> None:
    becomes(partial(tenants.answers, to, TENANT), TENANTS)
    for _ in range(ROUNDS):
        assert tenants.answers(to, TENANT) == TENANTS


def test_acl_goes_by_namespace_and_label_and_a_new_label_counts(to: str, tenants: Tenants, vault: str) -> None:
    """Behind a node cache after the 5 s for which it keeps an answer for one client."""
    right = {FRONT: "198.51.100.1", BACK: "REFUSED", STRANGER: "REFUSED"}
    becomes(partial(tenants.answers, to, vault), right)
    for _ in range(ROUNDS):
        assert tenants.answers(to, vault) == right
    tenants.label(BACK, "front")
    try:
        becomes(partial(tenants.answers, to, vault), right | {BACK: "198.51.100.1"})
    finally:
        tenants.label(BACK, "back")
    becomes(partial(tenants.answers, to, vault), right)


def test_the_log_has_namespace_name_and_labels_of_the_pod_that_asks(to: str, tenants: Tenants) -> None:
    for name in TENANTS:
        namespace, _, own = name.partition("/")
        asked = f"{namespace}-{own}.{'cached' if to == CACHE else 'direct'}.svc.cluster.local."
        assert tenants.dig(name, to, f"{asked} A") == "NXDOMAIN"
        line = f"{name} {own} {asked}"
        eventually(lambda line=line: line in logged(tenants.cluster), line)  # type: ignore[misc]
