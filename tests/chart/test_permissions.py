"""The chart and config/kubernetes give the server's account the same rights, and only those that its Corefile needs."""

import pytest
import yaml

from tests.support.chart.helm import ROOT, Object, Values, rendered
from topodns.app.load import settings_from_text
from topodns.plugins.block import Settings
from topodns.plugins.kubernetes.watched_kinds import resources
from topodns.topology.client_locator import Method

KUBERNETES = {"name": "kubernetes", "parameters": "cluster.local"}
PROBES = [{"name": "health"}, {"name": "ready"}]


def corefile(*plugins: Values) -> Values:
    return {"servers": [{"plugins": [*PROBES, *plugins]}]}


def located(methods: str) -> Values:
    return {"name": "topology", "configBlock": f"locate {methods}"}


def rules(objects: list[Object]) -> dict[str, list[Object]]:
    """By kind and name of the role."""
    roles = (each for each in objects if each["kind"] in ("ClusterRole", "Role"))
    return {f"{role['kind']}/{role['metadata']['name']}": role["rules"] for role in roles}


def shipped(*files: str) -> dict[str, list[Object]]:
    texts = [(ROOT / "config/kubernetes" / file).read_text(encoding="utf-8") for file in files]
    return rules([each for text in texts for each in yaml.safe_load_all(text)])


def watched(values: Values) -> set[str]:
    return {resource for rule in rules(rendered(values))["ClusterRole/topodns"] for resource in rule["resources"]}


def served(values: Values) -> Settings:
    """The settings that the server reads from the Corefile of these values."""
    (text,) = (each["data"]["Corefile"] for each in rendered(values) if each["kind"] == "ConfigMap")
    return settings_from_text(text, "Corefile", 53, {})


def test_the_rule_for_locators_is_that_of_the_plain_file() -> None:
    values = {"rbac": {"additional": ["nodelocators", "podlocators"]}}
    (rule,) = shipped("rbac-locators.yaml")["ClusterRole/topodns-locators"]
    assert rule in rules(rendered(values))["ClusterRole/topodns"]


def test_the_roles_are_those_of_the_plain_files() -> None:
    assert rules(rendered({})) == shipped("rbac.yaml", "rbac-events.yaml")
    assert rules(rendered({"rbac": {"events": False}})) == shipped("rbac.yaml")


def test_everything_is_listed_and_watched_and_nothing_is_read_alone_or_written() -> None:
    values = {"rbac": {"additional": ["pods", "podlocators", "serviceimports"], "events": False}}
    assert {tuple(rule["verbs"]) for each in rules(rendered(values)).values() for rule in each} == {("list", "watch")}


ALWAYS = {"services", "namespaces", "endpointslices"}
ACROSS = {**KUBERNETES, "configBlock": "multicluster clusterset.local"}


@pytest.mark.parametrize(
    ("plugins", "more"),
    [
        ([KUBERNETES], set()),
        ([KUBERNETES, {"name": "topology"}], {"nodes", "pods"}),
        ([KUBERNETES, {"name": "topology", "configBlock": "ttl 5"}], {"nodes", "pods"}),
        ([KUBERNETES, {"name": "topology", "configBlock": "# locate nodes"}], {"nodes", "pods"}),
        ([{**KUBERNETES, "configBlock": "pods insecure\nttl 30"}], set()),
        ([{**KUBERNETES, "configBlock": "ttl 30\n  pods verified"}], {"pods"}),
        ([{**KUBERNETES, "configBlock": "# pods verified"}], set()),
        ([KUBERNETES, {"name": "topology", "configBlock": "keys annotation\nlocate nodes pods"}], {"nodes", "pods"}),
        ([KUBERNETES, {"name": "topology", "configBlock": "locate nodes # and pods"}], {"nodes"}),
        ([KUBERNETES, located("nodelocator")], {"nodelocators"}),
        ([KUBERNETES, located("nodelocator slices")], {"nodelocators"}),
        ([KUBERNETES, located("nodes nodelocator")], {"nodes", "nodelocators"}),
        ([KUBERNETES, located("podcidr nodelocator slices")], {"nodes", "nodelocators"}),
        ([KUBERNETES, located("nodelocator podcidr-unverified")], {"nodes", "nodelocators"}),
        ([KUBERNETES, located("podlocator")], {"podlocators"}),
        ([KUBERNETES, located("nodes podlocator")], {"nodes", "podlocators"}),
        ([KUBERNETES, located("podlocator nodelocator pods")], {"nodelocators", "podlocators", "pods"}),
        ([ACROSS], {"serviceimports"}),
        ([ACROSS, located("nodelocator")], {"serviceimports", "clusterproperties", "nodelocators"}),
        (
            [{**ACROSS, "configBlock": f"{ACROSS['configBlock']}\ncluster_id east"}, located("nodelocator")],
            {"serviceimports", "nodelocators"},
        ),
    ],
)
def test_the_corefile_decides_which_kinds_the_role_may_watch(plugins: list[Values], more: set[str]) -> None:
    assert watched(corefile(*plugins)) == ALWAYS | more


def test_pods_can_be_left_alone_in_a_very_large_cluster() -> None:
    topology = {"name": "topology", "configBlock": "ttl 5"}
    values = {**corefile(KUBERNETES, topology), "locatePods": False}
    assert watched(values) == ALWAYS | {"nodes"}
    (settings,) = (block.settings.get("topology") for block in served(values).blocks)
    assert settings is not None
    assert (settings.locate, settings.ttl) == ((Method.NODES, Method.PODCIDR, Method.SLICES), 5)


def test_a_corefile_that_says_how_to_locate_is_left_as_it_is() -> None:
    values = {**corefile(KUBERNETES, {"name": "topology", "configBlock": "locate nodes pods"}), "locatePods": False}
    assert watched(values) == ALWAYS | {"nodes", "pods"}
    (settings,) = (block.settings.get("topology") for block in served(values).blocks)
    assert settings is not None
    assert settings.locate == (Method.NODES, Method.PODS)


@pytest.mark.parametrize(
    "methods",
    ["nodes pods slices", "nodelocator", "podlocator slices", "nodes podcidr nodelocator slices", "pods nodelocator"],
)
def test_the_role_has_the_kinds_that_the_server_watches_with_this_locate(methods: str) -> None:
    values = corefile(KUBERNETES, located(methods))
    (found,) = (resources(block.settings["kubernetes"], block.settings["topology"]) for block in served(values).blocks)
    assert watched(values) == {resource.name.partition(".")[0] for resource in found}


def test_a_corefile_that_the_chart_does_not_see_can_have_more() -> None:
    values = {**corefile(KUBERNETES), "rbac": {"additional": ["nodes", "pods"]}}
    assert watched(values) == ALWAYS | {"nodes", "pods"}


def test_without_topology_there_are_no_events_to_write() -> None:
    assert set(rules(rendered(corefile(KUBERNETES)))) == {"ClusterRole/topodns"}


def test_beside_the_cluster_dns_it_may_do_the_same() -> None:
    assert rules(rendered({"mode": "beside"})) == rules(rendered({}))


def roles_of_the_locator(values: Values) -> list[tuple[str, list[str], list[str]]]:
    """Kind of the role, resources and verbs of each rule."""
    return [
        (name.partition("/")[0], rule["resources"], rule["verbs"])
        for name, rules_of_role in rules(rendered(values)).items()
        if name.endswith("/topodns-locator")
        for rule in rules_of_role
    ]


@pytest.mark.parametrize(("kind", "written"), [("nodelocator", "nodelocators"), ("podlocator", "podlocators")])
def test_the_locator_reads_pods_nodes_and_keys_and_writes_its_own_kind_and_one_lease(kind: str, written: str) -> None:
    assert roles_of_the_locator({"locator": {"enabled": True, "kind": kind}}) == [
        ("ClusterRole", ["nodes", "pods", "services", "namespaces"], ["list", "watch"]),
        ("ClusterRole", ["serviceimports"], ["list", "watch"]),
        ("ClusterRole", [written], ["list", "watch", "create", "patch", "delete"]),
        ("Role", ["leases"], ["create"]),
        ("Role", ["leases"], ["get", "update"]),
    ]
    (lease,) = (
        rule["resourceNames"]
        for rule in rules(rendered({"locator": {"enabled": True}}))["Role/topodns-locator"]
        if "resourceNames" in rule
    )
    assert lease == ["topodns-locator"]


@pytest.mark.parametrize("kind", [Method.NODELOCATOR, Method.PODLOCATOR])
def test_with_the_locator_the_server_finds_clients_by_it_and_has_no_right_to_pods(kind: Method) -> None:
    values = {**corefile(KUBERNETES, {"name": "topology"}), "locator": {"enabled": True, "kind": kind.value}}
    assert watched(values) == ALWAYS | {"nodes", f"{kind.value}s"}
    (settings,) = (block.settings.get("topology") for block in served(values).blocks)
    assert settings is not None
    assert settings.locate == (Method.NODES, Method.PODCIDR, kind, Method.SLICES)


def test_the_roles_of_the_locator_are_those_of_the_plain_files() -> None:
    values = {"deployment": {"enabled": False}, "locator": {"enabled": True}}
    assert rules(rendered(values)) == shipped("locator/rbac.yaml")
