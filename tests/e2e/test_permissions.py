"""Requests to the API server by its audit log: none was denied, and every granted permission is used.

The release gets all that needs a permission: names of Pods, clients located by Pods, ServiceImports, a node cache. Then
everything is in the log but the lists that a server compares itself with every half hour or hour. A server on the host,
with the account's own token, has hours of two seconds.

All this comes before test_api_server.py: an API server that has just started denies what it has not read yet.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from tests.kubelab.control_plane import AUDIT_LOG
from tests.kubelab.lab import Lab
from tests.kubelab.options import CLUSTER_DNS, FIRST_SERVICES
from tests.support.chart.helm import CHART, rendered
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.host_process import ZONES, serving_on_host
from tests.support.kube.objects import Object, headless
from tests.support.kube.operator_commands import Operator
from tests.support.kube.waiting import becomes, eventually

# The API requests of service accounts of kube-system, by the audit log, and their permissions.


class Right(NamedTuple):
    """A right that a rule of RBAC grants: a verb on a resource of an API group, "" for the core."""

    group: str
    resource: str  # "pods", "deployments/scale"
    verb: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One sort of request: the account's name, the right that it takes, and whether RBAC denied it.

    Admission has the status 403, too, as for an Event in a namespace that is being terminated.
    """

    account: str
    right: Right  # without a resource where the path is none
    denied: bool


def asked(lab: Lab, *accounts: str) -> set[Asked]:
    """By these accounts, since the lab is up; the lab's option `audit` is on."""
    return {each for each in _all(lab) if each.account in accounts}


def _all(lab: Lab) -> Iterator[Asked]:
    with open(lab.control.dir / AUDIT_LOG, encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                break  # the API server is still writing it
            event = json.loads(line)
            about = event.get("objectRef", {})
            parts = (about.get("resource", ""), about.get("subresource", ""))
            right = Right(about.get("apiGroup", ""), "/".join(part for part in parts if part), event["verb"])
            account = event["user"]["username"].rpartition(":")[2]
            yield Asked(account, right, event.get("annotations", {}).get(DECISION) == "forbid")


def granted_rights(objects: Iterable[Object], account: str) -> set[Right]:
    """The rights that the roles among these objects give to the service account that they are bound to."""
    objects = list(objects)
    roles = {(each["kind"], each["metadata"]["name"]): each["rules"] for each in objects if "rules" in each}
    bindings = [each for each in objects if account in (subject["name"] for subject in each.get("subjects", ()))]
    return {
        Right(group, resource, verb)
        for binding in bindings
        for rule in roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


pytestmark = pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)

ACCOUNT, NODE_CACHE = "topodns", "node-local-dns"
CLUSTERSET: Final = "clusterset.local"
KUBERNETES: Final = ("pods verified", f"multicluster {CLUSTERSET}")
TOPOLOGY: Final = ("locate nodes slices pods",)
DECISION: Final = "authorization.k8s.io/decision"  # an annotation of an audit event
LOCATORS: Final = "topodns.io"

HURRIED: Final = """\
import sys
from topodns.cli.main import main
from topodns.kube.informer import reflector
reflector.VERIFY_EVERY = (1.0, 2.0)
sys.exit(main())
"""


def custom_resource(group: str, kind: str, plural: str, scope: str, approved: str) -> Object:
    """A CustomResourceDefinition of version v1alpha1 without a schema; `approved`: where its API was reviewed."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": approved}},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": schema}],
        },
    }


REVIEWS: Final = "https://github.com/kubernetes/enhancements/pull"
DEFINITIONS: Final = (
    custom_resource("multicluster.x-k8s.io", "ServiceImport", "serviceimports", "Namespaced", f"{REVIEWS}/1646"),
    custom_resource("about.k8s.io", "ClusterProperty", "clusterproperties", "Cluster", f"{REVIEWS}/2150"),
)
"""KEP-1645 and KEP-2149 have more of each."""


def all_that_needs_a_permission() -> dict[str, Any]:
    """Values: those of the chart, with more in the directives `kubernetes` and `topology`."""
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    plugins = {plugin["name"]: plugin for plugin in values["servers"][0]["plugins"]}
    plugins["kubernetes"] |= {"parameters": f"{CLUSTERSET} {ZONES}", "configBlock": "\n".join(KUBERNETES)}
    plugins["topology"]["configBlock"] = "\n".join(TOPOLOGY)
    node_cache = {"enabled": True, "dnsServer": [CLUSTER_DNS], "dnsDomain": "cluster.local"}
    return {"servers": values["servers"], "nodeCache": node_cache, "admissionPolicy": {"enabled": False}}


@pytest.fixture(scope="module")
def with_everything(
    installed: str, cluster: Cluster, operator: Operator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The release is so; in the end it is again as before."""
    folder = tmp_path_factory.mktemp("values")
    definition, values = folder / "crd.json", folder / "values.json"
    definition.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": DEFINITIONS}))
    values.write_text(json.dumps(all_that_needs_a_permission()))
    release = ("--namespace", "kube-system", "--wait")
    operator.run("kubectl", "apply", "-f", str(definition))
    try:
        operator.run(*("helm", "upgrade", "topodns", str(CHART), *release, "--reuse-values", "--values", str(values)))
        yield
    finally:
        operator.run("helm", "rollback", "topodns", *release)
        operator.run("kubectl", "delete", "-f", str(definition))
        becomes(lambda: [len(pods(cluster, f"k8s-app={app}")) for app in ("kube-dns", NODE_CACHE)], [2, 0])


def pods(cluster: Cluster, selector: str) -> list[Object]:
    """Those that are going, too."""
    return list(cluster.list("Pod", "kube-system", selector))


@pytest.fixture
def lived(
    with_everything: None, cluster: Cluster, place: Place, askers: Askers, operator: Operator, tmp_path: Path
) -> list[Object]:
    """All that can be asked for has been asked for; the objects that the chart has made meanwhile."""
    lists = (sys.executable, "-c", HURRIED)
    zones = f"{CLUSTERSET} {ZONES}"
    with serving_on_host(cluster, tmp_path, *TOPOLOGY, zones=zones, kubernetes=KUBERNETES, command=lists):
        for name in ("first", "second"):  # the second finds a Lease, which is there to be renewed
            place.create(headless(name, "no such key"))
            eventually(partial(got, place, name), f"an Event on the Service {name}")
        becomes(lambda: askers["node1"].addresses("kubernetes.default.svc.cluster.local"), {FIRST_SERVICES[0]})
        values = operator.run("helm", "--namespace", "kube-system", "get", "values", "topodns", "-o", "json")
        objects = rendered(json.loads(values))
        becomes(lambda: granted_rights(objects, ACCOUNT) - rights(asked(cluster.lab, ACCOUNT)), set())
    return objects


def got(place: Place, service: str) -> bool:
    return any(event["involvedObject"]["name"] == service for event in place.cluster.list("Event", place.name))


def rights(requests: set[Asked]) -> set[Right]:
    return {each.right for each in requests if each.right.resource}


def test_no_request_was_denied_and_every_granted_permission_was_used(lived: list[Object], cluster: Cluster) -> None:
    requests = asked(cluster.lab, ACCOUNT, NODE_CACHE)
    assert {each for each in requests if each.denied} == set()
    # The servers of test_locator.py had the right to read locators, and used it.
    assert {right for right in rights(requests) if right.group != LOCATORS} == granted_rights(lived, ACCOUNT)
    assert asked(cluster.lab, NODE_CACHE) == set()
    assert granted_rights(lived, NODE_CACHE) == set()
