"""Mistakes in annotations, labels, slices and Nodes: each is named by the log, by `audit` and by `explain`."""

import logging
from pathlib import Path
from typing import Final

import pytest

from topodns.app.cluster_lifecycle import ProblemLog
from topodns.app.load import load_chosen
from topodns.cli import main as cli
from topodns.inspect.sources import manifest_clusters
from topodns.plugins.kubernetes.clusters import load_manifests

CLUSTER: Final = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Node
metadata: {name: worker-1, labels: {topology.kubernetes.io/zone: a, kubernetes.io/hostname: worker-1, rack: "1"}}
spec: {podCIDR: 10.244.1.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.1}]}
---
apiVersion: v1
kind: Node
metadata: {name: worker-2, labels: {topology.kubernetes.io/zone: b, kubernetes.io/hostname: worker-2, rack: "2"}}
spec: {podCIDR: 10.244.2.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.2}]}
---
apiVersion: v1
kind: Service
metadata:
  name: db
  namespace: shop
  annotations: {topodns.io/topology-keys: "rack,*", topodns.io/ttl: "30"}
spec: {clusterIP: None}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
endpoints: [{addresses: [10.1.0.1], nodeName: worker-1}, {addresses: [10.1.0.2], nodeName: worker-2}]
"""
COREFILE: Final = "cluster.local {\n kubernetes {\n manifests cluster.yaml\n }\n topology\n}\n"
KEYS: Final = '"rack,*"'

UNKNOWN: Final = "is unknown and has no effect, did you mean 'topodns.io/topology-keys'?"
NOT_HERE: Final = "has no effect on"
SLICE: Final = "apiVersion: discovery"
WORKLOAD: Final = """\
kind: {}
metadata: {{name: web, annotations: {{topodns.io/topology-keys: rack}}}}"""
TEMPLATE: Final = """\
kind: {}
metadata: {{name: web}}
spec: {{template: {{metadata: {{annotations: {{topology-keys: rack}}}}}}}}"""

MISTAKES: Final = [
    ("topodns.io/topology-keys:", "topodns.io/topologykeys:", "did you mean 'topodns.io/topology-keys'?"),
    ("topodns.io/topology-keys:", "topodns.com/topology-keys:", "did you mean 'topodns.io/topology-keys'?"),
    ("topodns.io/ttl:", "topodns.io/tll:", "did you mean 'topodns.io/ttl'?"),
    ('topodns.io/ttl: "30"', "topodns.io/ttl: 30", "put it in quotes; it has no effect"),
    ('"30"', "soon", "annotation 'topodns.io/ttl': expected 1 to 300 seconds, found 'soon'"),
    ("topodns.io/ttl:", "topodns.io/min-endpoints: none, x:", "expected 1 to 1000, found 'none'"),
    ("topodns.io/ttl:", "topodns.io/max-load: much, x:", "expected a decimal from 1 to 100, found 'much'"),
    ("topodns.io/ttl:", "topodns.io/max-endpoints: all, x:", "expected 1 to 1000, found 'all'"),
    ("topodns.io/ttl:", "topodns.io/apply-to: both, x:", "expected near or name, found 'both'"),
    (KEYS, "'*', topodns.io/min-endpoints: '2'", "annotation 'topodns.io/min-endpoints' has no effect on the keys *"),
    (
        KEYS,
        "'kubernetes.io/hostname,*', topodns.io/max-load: '2'",
        "annotation 'topodns.io/max-load' has no effect on the keys kubernetes.io/hostname,*",
    ),
    ("topodns.io/ttl:", "topodns.io/minendpoint:", "did you mean 'topodns.io/min-endpoints'?"),
    ("  name: db\n", "  name: db\n  labels: {topodns.io/ttl: '3'}\n", "label 'topodns.io/ttl' has no effect, did"),
    *(
        ("{name: shop}", f"{{name: shop, {wrong}: 'rack'}}}}", f"namespace 'shop': {words}")
        for wrong, words in (
            ("annotations: {topodns.io/topology-key", f"annotation 'topodns.io/topology-key' {UNKNOWN}"),
            ("annotations: {topodns.io/max-load", f"annotation 'topodns.io/max-load' {NOT_HERE} a Namespace: put"),
            ("labels: {topodns.io/topology-keys", "label 'topodns.io/topology-keys' has no effect, did you mean"),
        )
    ),
    (
        "{name: db-1,",
        "{name: db-1, annotations: {topodns.io/ttl: '3'},",
        f"its EndpointSlices: annotation 'topodns.io/ttl' {NOT_HERE} an EndpointSlice: put 'topodns.io/ttl'",
    ),
    *(
        (SLICE, f"{workload.format(kind)}\n---\n{SLICE}", f"cluster.yaml:25: {kind} web: annotation {words}")
        for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job")
        for workload, words in (
            (WORKLOAD, f"'topodns.io/topology-keys' {NOT_HERE} a {kind}: put"),
            (TEMPLATE, f"'topology-keys' {NOT_HERE} a Pod: put 'topodns.io/topology-keys' on the Service"),
        )
    ),
    (KEYS, "[rack]", "write its items as one text, such as 'a,b'; it has no effect"),
    (KEYS, "'rak,*'", "no Node has the label rak, which therefore never matches; did you mean rack?"),
    (KEYS, "'rack,,*'", "found nothing (a comma too many)"),
    (KEYS, "'rack *'", "found 'rack *' (keys are separated by commas)"),
    (KEYS, "rack;zone", "found 'rack;zone' (keys are separated by commas)"),
    (KEYS, "Kubernetes.io/Hostname", "(did you mean 'kubernetes.io/hostname'?)"),
    (KEYS, "'topology.kubernetes.io/zone,kubernetes.io/hostname'", "nearest first: kubernetes.io/hostname,topology"),
    (KEYS, "None", "no Node has the label None, which therefore never matches; did you mean 'none'?"),
    (KEYS, "NONE", "no Node has the label NONE, which therefore never matches; did you mean 'none'?"),
    (KEYS, "'rack,none'", "never matches; did you mean 'none'? It counts alone"),
    (KEYS, "'! rack'", "expected KEY, !KEY or *, found '! rack' (did you mean '!rack'?)"),
    (KEYS, "'*,rack'", "keys after * are ignored: rack"),
    (KEYS, "'rack,rack'", "repeated keys are ignored: rack"),
    ("clusterIP: None", "clusterIP: 10.96.0.9", "topology keys have no effect here: the Service is not headless"),
    ("nodeName: worker-1", "nodeName: wroker-1", "there is no Node wroker-1 (worker-1?)"),
    ("service-name: db", "service-name: dc", "would have the label kubernetes.io/service-name=db"),
    ("kubernetes.io/service-name:", "kubernetes.io/servicename:", "no EndpointSlice, which would have the label"),
    ("service-name: db", "service-name: dbb", "name=db; EndpointSlice db-1 of the namespace names dbb"),
    ("kubernetes.io/service-name:", "service-name:", "; EndpointSlice db-1 of the namespace has no such label"),
    ("db-1, namespace: shop", "db-1, namespace: shopp", "; EndpointSlice db-1 of namespace shopp names db"),
    ("kind: EndpointSlice", "kind: Endpointslice", "cluster.yaml:25: Endpointslice shop/db-1: kind 'Endp"),
    ("{name: shop}", "{name: shopp}", "no namespace 'shop'"),
    ("address: 10.0.0.2", "address: 10.0.0.1", "several Nodes have the address 10.0.0.1, so it is of none"),
    ("10.244.2.0/24", "10.244.1.0/24", "so it is of none: worker-1, worker-2"),
    ("  annotations:", "  annotation:", "cluster.yaml:17: Service shop/db: unknown field metadata.annotation"),
    ("endpoints:", "endpoint:", "unknown field endpoint, did you mean endpoints?"),
    ("addressType: IPv4", "addressType: IPv6", 'addresses[0]: expected an address of type IPv6, found "10.1.0.1"'),
    ("addressType: IPv4", "addressType: IPv4\nports: [{protocol: tpc}]", "cluster.yaml:25: skipped EndpointSlice"),
    ("clusterIP: None", "clusterIP: none", 'spec.clusterIP: expected an address or None, found "none"'),
    ("---\napiVersion: disc", "apiVersion: disc", "cluster.yaml:24: the key 'apiVersion' is there again"),
]  # fmt: skip
CLIENTS: Final = {"address: 10.0.0.2": "10.0.0.1", "10.244.2.0/24": "10.244.1.9"}
"""The client of an explanation, where it is not the one on worker-1."""


def log_problems(corefile: Path, checks: int = 1) -> ProblemLog:
    """Log the problems of the manifests of a Corefile, as a server does at its start and at changes after it."""
    problems = ProblemLog()
    problems.clusters = manifest_clusters(load_chosen(str(corefile), 53, None))
    for _ in range(checks):
        list(problems.check())
    return problems


@pytest.mark.parametrize(("right", "wrong", "words"), MISTAKES)
def test_a_mistake_is_named_by_log_audit_and_explain(
    tmp_path: Path,
    right: str,
    wrong: str,
    words: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert right in CLUSTER
    corefile = tmp_path / "Corefile"
    corefile.write_text(COREFILE)
    (tmp_path / "cluster.yaml").write_text(CLUSTER.replace(right, wrong, 1))

    log_problems(corefile, checks=2)
    assert len([line for line in caplog.messages if words in line]) == 1, caplog.messages

    def printed(*arguments: str) -> str:
        caplog.clear()
        cli.main([*arguments])
        read = capsys.readouterr()
        return " ".join(f"{read.out}\n{read.err}\n{caplog.text}".split())

    assert words in printed("audit", "-conf", str(corefile), "--wide")
    client = ("--client", CLIENTS[right]) if right in CLIENTS else ("--node", "worker-1")
    assert words in printed("explain", "-conf", str(corefile), *client, "db.shop.svc.cluster.local")


STRAYS: Final = [
    ("service-name: db", "service-name: dbb", "names the Service dbb, which does not exist, did you mean db?"),
    ("kubernetes.io/service-name:", "service-name:", "service-name, so it is of no Service, did you mean db?"),
    ("db-1, namespace: shop", "db-1, namespace: shopp", "does not exist in namespace shopp, did you mean shop/db?"),
]


@pytest.mark.parametrize("with_keys", [True, False])
@pytest.mark.parametrize(("right", "wrong", "words"), STRAYS)
def test_a_slice_of_no_service_is_named_at_its_place_by_log_audit_and_check(
    tmp_path: Path,
    right: str,
    wrong: str,
    words: str,
    with_keys: bool,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    corefile = tmp_path / "Corefile"
    corefile.write_text(COREFILE)
    cluster = CLUSTER.replace(right, wrong, 1)
    if not with_keys:
        cluster = cluster.replace(
            '  annotations: {topodns.io/topology-keys: "rack,*", topodns.io/ttl: "30"}\n', "  labels: {app: db}\n"
        )
    (tmp_path / "cluster.yaml").write_text(cluster)
    log_problems(corefile)
    logged = "\n".join(caplog.messages)
    assert "cluster.yaml:25: EndpointSlice shop" in logged
    for command in (["audit", "-conf", str(corefile), "--wide"], ["check", "-conf", str(corefile)]):
        caplog.clear()
        cli.main(command)
        read = capsys.readouterr()
        printed = " ".join(f"{read.out} {read.err} {caplog.text}".split())
        for each in (logged, printed):
            assert each.count(words) == 1, each
            assert "it has no EndpointSlice, which would have the label kubernetes.io/service-name=db" in each


def test_a_misspelt_port_of_a_slice_is_named_by_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "Corefile").write_text(COREFILE)
    ports = "ports: [{name: rediss, port: 6379, protocol: TCP}]"
    (tmp_path / "cluster.yaml").write_text(CLUSTER.replace("addressType: IPv4", f"addressType: IPv4\n{ports}"))
    cli.main(
        ["explain", "-conf", str(tmp_path / "Corefile"), "--node", "worker-1", "_redis._tcp.db.shop.svc.cluster.local"]
    )
    words = "named 'redis' of protocol 'tcp'; they have _rediss._tcp, did you mean 'rediss'?"
    assert words in " ".join(capsys.readouterr().out.split())


def test_explain_says_why_a_client_outside_of_node_pools_goes_by_its_hostname(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OpenYurt's rule: the annotation's value kubernetes.io/zone means node pools, too."""
    (tmp_path / "Corefile").write_text(COREFILE)
    keyed = CLUSTER.replace(f"topodns.io/topology-keys: {KEYS}", "openyurt.io/topologyKeys: kubernetes.io/zone")
    (tmp_path / "cluster.yaml").write_text(keyed)
    asked = ["explain", "-conf", str(tmp_path / "Corefile"), "--node", "worker-1", "db.shop.svc.cluster.local"]
    words = (
        "the client's node has no label apps.openyurt.io/nodepool, so kubernetes.io/hostname counts in its place: "
        "the first key that matches an endpoint decides"
    )
    cli.main(asked)
    assert words in " ".join(capsys.readouterr().out.split())
    pooled = keyed.replace("rack: ", "apps.openyurt.io/nodepool: a, rack: ")
    (tmp_path / "cluster.yaml").write_text(pooled)
    cli.main(asked)
    assert "because the first key that matches" in " ".join(capsys.readouterr().out.split())


DUAL: Final = """\
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-2, namespace: shop, labels: {kubernetes.io/servicename: db}}
addressType: IPv6
endpoints: [{addresses: ["fd00::1"], nodeName: worker-1}]
"""


def test_a_slice_of_one_family_without_its_label_is_named_by_log_audit_and_explain(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Corefile").write_text(COREFILE)
    dual = CLUSTER.replace("clusterIP: None", "clusterIP: None, ipFamilies: [IPv4, IPv6], selector: {app: db}")
    (tmp_path / "cluster.yaml").write_text(dual + DUAL)
    log_problems(tmp_path / "Corefile")
    words = "no EndpointSlice of addressType IPv6, though spec.ipFamilies has it; one would have the label"
    assert len([line for line in caplog.messages if words in line]) == 1, caplog.messages
    asked = ["explain", "--node", "worker-1", "db.shop.svc.cluster.local", "AAAA"]
    for command in (["audit", "--wide"], asked):
        cli.main([command[0], "-conf", str(tmp_path / "Corefile"), *command[1:]])
        assert words in " ".join(capsys.readouterr().out.split())


def test_a_hostname_behind_a_zone_that_one_node_lacks_is_named_by_log_audit_and_explain(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Corefile").write_text(COREFILE)
    keyed = CLUSTER.replace(KEYS, "'topology.kubernetes.io/zone,kubernetes.io/hostname'")
    (tmp_path / "cluster.yaml").write_text(keyed.replace("topology.kubernetes.io/zone: b, ", ""))
    log_problems(tmp_path / "Corefile")
    words = (
        "the key kubernetes.io/hostname never decides for clients on Nodes with the label topology.kubernetes.io/zone"
    )
    assert len([line for line in caplog.messages if words in line]) == 1, caplog.messages
    for command in (["audit", "--wide"], ["explain", "--node", "worker-1", "db.shop.svc.cluster.local"]):
        cli.main([command[0], "-conf", str(tmp_path / "Corefile"), *command[1:]])
        assert words in " ".join(capsys.readouterr().out.split())


def test_a_namespace_of_a_default_that_does_not_exist_is_named_by_log_and_audit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    corefile = tmp_path / "Corefile"
    corefile.write_text(COREFILE.replace("topology", "topology {\n default rack,* namespaces shop shpo\n }"))
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    log_problems(corefile)
    words = f"{corefile}:6: 'default' names the namespace 'shpo', which does not exist, did you mean 'shop'?"
    assert [line for line in caplog.messages if "default" in line] == [f"plugin/topology: {words}"]
    cli.main(["audit", "-conf", str(corefile), "--wide"])
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "default", "plugin", "words"),
    [
        (
            "namespaces shopp",
            "",
            "kubernetes",
            "3: 'namespaces' names the namespace 'shopp', which does not exist, did",
        ),
        ("namespace_labels env=prod", "", "kubernetes", "3: no Namespace has the labels 'env=prod', so that every"),
        ("labels tier=web", "", "kubernetes", "3: no Service has the labels 'tier=web'"),
        ("", "rack labels tier=web", "topology", "6: 'default' has the labels 'tier=web', which no headless Service"),
        ("", "rak namespaces shop", "topology", "6: 'default': no Node has the label rak, which therefore never"),
    ],
)
def test_a_line_of_the_corefile_that_selects_nothing_is_named_by_log_and_audit(
    tmp_path: Path,
    option: str,
    default: str,
    plugin: str,
    words: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Services of namespaces that the line hides are in no audit, as their names are NXDOMAIN."""
    corefile = tmp_path / "Corefile"
    text = COREFILE.replace("{\n manifests", f"{{\n {option}\n manifests") if option else COREFILE
    corefile.write_text(text.replace("topology", f"topology {{\n default {default}\n }}") if default else text)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    log_problems(corefile, checks=2)
    named = [line for line in caplog.messages if words in line]
    assert [line.startswith(f"plugin/{plugin}: {corefile}:") for line in named] == [True], caplog.messages
    cli.main(["audit", "-conf", str(corefile), "--wide"])
    printed = " ".join(capsys.readouterr().out.split())
    assert words in printed
    assert ("shop/db" in printed) != bool(option)


def test_a_finding_about_keys_of_a_default_has_its_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    corefile = tmp_path / "Corefile"
    corefile.write_text(COREFILE.replace("topology", "topology {\n default rak,*\n }"))
    (tmp_path / "cluster.yaml").write_text(CLUSTER.replace(f"topodns.io/topology-keys: {KEYS}, ", ""))
    log_problems(corefile)
    words = f"which therefore never matches; did you mean rack? (keys of 'default', {corefile}:6)"
    assert [line for line in caplog.messages if words in line] == [
        f"plugin/topology: {tmp_path}/cluster.yaml:17: Service shop/db: no Node has the label rak, {words}"
    ]
    for command in (["audit", "--wide"], ["explain", "--node", "worker-1", "db.shop.svc.cluster.local"]):
        cli.main([command[0], "-conf", str(corefile), *command[1:]])
        assert words in " ".join(capsys.readouterr().out.split())


def test_a_problem_is_not_logged_again_where_only_its_place_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "Corefile").write_text(COREFILE)
    manifest = CLUSTER.replace(KEYS, "'rak,*'")
    (tmp_path / "cluster.yaml").write_text(manifest)
    problems = log_problems(tmp_path / "Corefile")
    (tmp_path / "cluster.yaml").write_text(f"# A comment\n{manifest}")
    load_manifests(problems.clusters)
    list(problems.check())
    (line,) = (each for each in caplog.messages if "no Node has the label rak" in each)
    assert line.startswith(f"plugin/topology: {tmp_path}/cluster.yaml:17: Service shop/db: ")


def test_an_annotation_of_nodes_is_named_by_log_and_audit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Corefile").write_text(COREFILE)
    annotated = CLUSTER.replace("labels: {topology", "annotations: {topodns.io/topology-keys: rack}, labels: {topology")
    (tmp_path / "cluster.yaml").write_text(annotated)
    log_problems(tmp_path / "Corefile")
    words = f"Nodes: annotation 'topodns.io/topology-keys' {NOT_HERE} a Node: put 'topodns.io/topology-keys'"
    assert [line for line in caplog.messages if words in line] == [f"plugin/topology: {words} on the Service"]
    cli.main(["audit", "-conf", str(tmp_path / "Corefile"), "--wide"])
    assert f"annotation 'topodns.io/topology-keys' {NOT_HERE} a Node" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        (
            '"2"}}',
            '"1.", rack2: x}}',
            "values '1' (worker-1) and '1.' (worker-2) of the label rack differ",
        ),
        (
            "io/zone: b, ",
            "io/zone: A, ",
            "zones 'A' (worker-2) and 'a' (worker-1) differ in case only, and are",
        ),
        (
            "io/zone: b, ",
            "io/zone: '', ",
            "1 Node has topology.kubernetes.io/zone with an empty value, which is a domain of its own: worker-2",
        ),
        (
            "hostname: worker-2",
            "hostname: worker-1",
            "Nodes worker-1 and worker-2 both have kubernetes.io/hostname=worker-1: one domain",
        ),
        (
            "nodeName: worker-2",
            "nodeName: worker-2, zone: a",
            "ready endpoints have zone a, but their Node worker-2 is in b, which counts",
        ),
        (
            "io/zone: b, ",
            "io/Zone: b, ",
            "1 of 2 Nodes lack the label topology.kubernetes.io/zone (some have topology.kubernetes.io/Zone), so",
        ),
    ],
)
def test_a_mistake_of_labels_and_zones_of_nodes_is_a_warning_of_log_and_audit_and_explained(
    tmp_path: Path,
    right: str,
    wrong: str,
    words: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert right in CLUSTER
    (tmp_path / "Corefile").write_text(COREFILE)
    keyed = CLUSTER.replace(KEYS, '"kubernetes.io/hostname,rack,topology.kubernetes.io/zone,*"')
    (tmp_path / "cluster.yaml").write_text(keyed.replace(right, wrong))
    log_problems(tmp_path / "Corefile", checks=2)
    assert [record.levelno for record in caplog.records if words in record.message] == [logging.WARNING]
    assert cli.main(["audit", "-conf", str(tmp_path / "Corefile"), "--wide", "--fail-on", "warning"]) == 1
    assert words in " ".join(capsys.readouterr().out.split())
    explain = ["explain", "-conf", str(tmp_path / "Corefile"), "--node", "worker-1", "db.shop.svc.cluster.local"]
    assert cli.main(explain) == 0
    assert words in " ".join(capsys.readouterr().out.split())


def test_a_label_that_a_node_lacks_is_a_warning_of_log_and_audit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """An explanation names it where it is the client's Node, or an endpoint's."""
    (tmp_path / "Corefile").write_text(COREFILE)
    keyed = CLUSTER.replace(KEYS, '"topology.kubernetes.io/zone,*"').replace("io/zone: b, ", "io/zoen: b, ")
    (tmp_path / "cluster.yaml").write_text(keyed)
    log_problems(tmp_path / "Corefile")
    words = "1 of 2 Nodes lack the label topology.kubernetes.io/zone, so it matches nothing there: worker-2"
    assert [record.levelno for record in caplog.records if words in record.message] == [logging.WARNING]
    cli.main(["audit", "-conf", str(tmp_path / "Corefile"), "--wide"])
    assert words in " ".join(capsys.readouterr().out.split())


IMPORT: Final = """\
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: db, namespace: shop, annotations: {topodns.io/topology-keys: "topology.kubernetes.io/zoen,clusters"}}
spec: {type: Headless, ports: []}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: db-east
  namespace: shop
  labels: {multicluster.kubernetes.io/service-name: db, multicluster.kubernetes.io/source-cluster: east}
addressType: IPv4
endpoints: [{addresses: [10.1.0.1], nodeName: worker-1, zone: a}]
"""
ID: Final = """\
---
apiVersion: about.k8s.io/v1alpha1
kind: ClusterProperty
metadata: {name: cluster.clusterset.k8s.io}
spec: {value: east}
"""


@pytest.mark.parametrize(
    ("keys", "own", "words"),
    [
        ("", ID, "ServiceImport shop/db: no Node has the label topology.kubernetes.io/zoen, which"),
        ("", ID, "no Node has the label clusters, which therefore never matches; did you mean cluster?"),
        ("cluster,rack", ID, "ServiceImport shop/db: the key rack never decides, since cluster before it"),
        ("cluster,*", "", "the id of this cluster is unknown"),
    ],
)
def test_a_mistake_of_a_service_import_is_named_by_log_audit_and_explain(
    tmp_path: Path,
    keys: str,
    own: str,
    words: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "Corefile").write_text(
        COREFILE.replace(
            "cluster.local {\n kubernetes {", "clusterset.local {\n kubernetes {\n multicluster clusterset.local"
        )
    )
    wrong = IMPORT.replace("topology.kubernetes.io/zoen,clusters", keys) if keys else IMPORT
    (tmp_path / "cluster.yaml").write_text(CLUSTER + wrong + own)
    log_problems(tmp_path / "Corefile", checks=2)
    assert len([line for line in caplog.messages if words in line]) == 1, caplog.messages
    for command in (["audit", "--wide"], ["explain", "--node", "worker-1", "db.shop.svc.clusterset.local"]):
        cli.main([command[0], "-conf", str(tmp_path / "Corefile"), *command[1:]])
        assert words in " ".join(capsys.readouterr().out.split())


def test_without_a_mistake_nothing_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "Corefile").write_text(COREFILE)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    log_problems(tmp_path / "Corefile")
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []
