"""The options of `kubernetes`, as CoreDNS reads them, and where it takes the cluster from.

That is `manifests`, `endpoint` and `tls`, `kubeconfig`, or the Pod we run in.
"""

import os
from pathlib import Path

import pytest

from tests.support.corefile_settings import block_problem, only_block, settings
from topodns.cluster.label_selector import parse_selector
from topodns.kube.client.contract import ApiSettings
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode

CLUSTER_LOCAL = ("cluster", "local")
IN_ADDR = ("in-addr", "arpa")


def kubernetes(options: str = "", arguments: str = "cluster.local") -> KubernetesSettings:
    block = only_block(f"kubernetes {arguments} {{\n manifests .\n{options}\n}}")
    settings: KubernetesSettings = block.settings["kubernetes"]
    return settings


def option_problem(options: str, arguments: str = "cluster.local") -> str:
    """The options start on line 4."""
    return block_problem(f"kubernetes {arguments} {{\n manifests .\n{options}\n}}")


def expected(**fields: object) -> dict[str, object]:
    return fields


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ("", expected(ttl=5, pods=PodMode.DISABLED, startup_timeout=5.0, labels=None, namespaces=frozenset())),
        ("namespaces default", expected(namespaces=frozenset({"default"}))),
        ("namespaces a b\nnamespaces c", expected(namespaces=frozenset({"a", "b", "c"}))),
        ("namespace_labels team=dns", expected(namespace_labels=parse_selector("team=dns"))),
        ("labels app in (web, db),tier!=x", expected(labels=parse_selector("app in (web, db),tier!=x"))),
        ("pods disabled", expected(pods=PodMode.DISABLED)),
        ("pods insecure", expected(pods=PodMode.INSECURE)),
        ("pods verified", expected(pods=PodMode.VERIFIED)),
        ("endpoint_pod_names", expected(endpoint_pod_names=True)),
        ("ttl 0", expected(ttl=0)),
        ("ttl 3600", expected(ttl=3600)),
        ("noendpoints", expected(noendpoints=True)),
        ("ignore empty_service", expected(ignore_empty_service=True)),
        ("fallthrough", expected(fallthrough=((),))),
        ("fallthrough in-addr.arpa A.org", expected(fallthrough=(IN_ADDR, ("a", "org")))),
        ("fallthrough 10.0.0.0/8", expected(fallthrough=(("10", *IN_ADDR),))),
        ("multicluster cluster.local", expected(multicluster=(CLUSTER_LOCAL,))),
        ("multicluster cluster.local\ncluster_id east.eu-1", expected(cluster_id="east.eu-1")),
        ("zonal", expected(zonal=True)),
        ("startup_timeout 1m30s", expected(startup_timeout=90.0)),
        ("apiserver_qps 12.5\napiserver_burst 20\napiserver_max_inflight 4", expected(ttl=5)),
    ],
)
def test_options(options: str, fields: dict[str, object]) -> None:
    found = kubernetes(options)
    assert {name: getattr(found, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("arguments", "origins"),
    [
        ("", [()]),
        ("cluster.local", [CLUSTER_LOCAL]),
        ("cluster.local in-addr.arpa", [CLUSTER_LOCAL, IN_ADDR]),
        ("in-addr.arpa Cluster.Local.", [IN_ADDR, CLUSTER_LOCAL]),
        ("cluster.local 10.0.0.0/15", [CLUSTER_LOCAL, ("0", "10", *IN_ADDR), ("1", "10", *IN_ADDR)]),
        ("cluster.local cluster.local", [CLUSTER_LOCAL]),
    ],
)
def test_zones_are_the_arguments_or_the_block_s(arguments: str, origins: list[tuple[str, ...]]) -> None:
    assert kubernetes("", arguments).origins == tuple(origins)


def test_without_arguments_all_zones_of_the_block_are_served() -> None:
    found = settings("a.org 10.0.0.0/15 {\n kubernetes {\n  manifests .\n }\n}").blocks[0].settings.get("kubernetes")
    assert found is not None
    assert found.origins == (("a", "org"), ("0", "10", *IN_ADDR), ("1", "10", *IN_ADDR))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("namespaces", "'namespaces' has no argument, expected names of namespaces"),
        ("namespace_labels", "'namespace_labels' has no argument, expected a label selector"),
        ("pods", "'pods' has no argument, expected disabled, insecure or verified"),
        ("pods insecur", "'pods' has 'insecur', did you mean 'insecure'?"),
        (
            "pods insecure verified",
            "'pods' has the arguments 'insecure verified', expected disabled, insecure or verified",
        ),
        ("endpoint_pod_names on", "'endpoint_pod_names' has the arguments 'on', expected none"),
        ("cluster_id", "'cluster_id' has no argument, expected the id of this cluster"),
        ("cluster_id A_b", "'cluster_id' has 'A_b', expected a name of a-z, 0-9, '-' and '.', such as east"),
        ("ttl", "'ttl' has no argument, expected seconds"),
        ("ttl 3601", "'ttl' has '3601', expected a whole number from 0 to 3600"),
        ("ttl -1", "'ttl' has '-1', expected a whole number from 0 to 3600"),
        ("ttl 5s", "'ttl' has '5s', expected a whole number from 0 to 3600"),
        ("ttl \u0665", "'ttl' has '\u0665', expected a whole number from 0 to 3600"),
        ("noendpoints yes", "'noendpoints' has the arguments 'yes', expected none"),
        ("ignore empty", "'ignore' has 'empty', expected empty_service"),
        ("ignore", "'ignore' has no argument, expected empty_service"),
        ("zonal x", "'zonal' has the arguments 'x', expected none"),
        ("startup_timeout", "'startup_timeout' has no argument, expected a duration"),
        (
            "snapshot",
            "'snapshot' has no argument, expected a file, and perhaps `interval` and `max_age`, each with a duration",
        ),
        (
            "snapshot /state 30s",
            "'snapshot' has the arguments '/state 30s', expected a file, and perhaps `interval` and `max_age`, "
            "each with a duration",
        ),
        (
            "snapshot /state interval 1m interval 2m",
            "'snapshot' has the arguments '/state interval 1m interval 2m', expected a file, and perhaps `interval` "
            "and `max_age`, each with a duration",
        ),
        ("snapshot /state interval 500ms", "'snapshot' has '500ms', expected at least 1s"),
        ("snapshot /state max_age never", "'snapshot' has 'never', expected a duration such as 5s, 1m30s or 500ms"),
        ('snapshot ""', "'snapshot' has an empty word, expected a path"),
        ("startup_timeout 5", "'startup_timeout' has '5', expected a duration such as 5s, 1m30s or 500ms"),
        ("apiserver_qps -1", "'apiserver_qps' has '-1', expected a number of at least 0"),
        ("apiserver_burst 1.5", "'apiserver_burst' has '1.5', expected a whole number from 0 to 2147483647"),
        ("apiserver_max_inflight", "'apiserver_max_inflight' has no argument, expected a whole number"),
        ("fallthru", "unknown option 'fallthru' of 'kubernetes', did you mean 'fallthrough'?"),
        ("tll 5", "unknown option 'tll' of 'kubernetes', did you mean 'ttl'?"),
        ("ttl 5 {\n x\n}", "found 'x', but 'ttl' has no options"),
    ],
)
def test_a_wrong_option_is_refused(options: str, problem: str) -> None:
    line = 5 if "\n" in options else 4
    assert option_problem(options) == f"Corefile:{line}: {problem}"


def test_a_wrong_selector_is_refused_with_its_reason() -> None:
    assert option_problem("labels a in (").startswith("Corefile:4: 'labels' is no label selector: ")


@pytest.mark.parametrize(
    ("options", "instead"),
    [
        ("resyncperiod 5m", "CoreDNS dropped it in 1.7; leave it out"),
        ("upstream 10.0.0.1", "CoreDNS dropped it in 1.7; leave it out: "),
        ("transfer to *", "CoreDNS dropped it in 1.8; leave it out: "),
        ("federation prod example.org", "CoreDNS dropped federation in 1.7; leave it out"),
        ("autopath 0", "CoreDNS made it a directive; write `autopath @kubernetes`"),
        ("cidrs 10.0.0.0/8", "CoreDNS dropped it; write the prefixes behind `kubernetes`"),
    ],
)
def test_an_obsolete_option_of_coredns_is_refused_with_its_replacement(options: str, instead: str) -> None:
    name = options.partition(" ")[0]
    got = f"Corefile:4: topodns has no option '{name}' of 'kubernetes': {instead}"
    assert option_problem(options).startswith(got)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            "namespaces a\nnamespace_labels b=c",
            "'kubernetes' has both 'namespaces' and 'namespace_labels', expected one of them",
        ),
        ("zonal\nnoendpoints", "'kubernetes' has both 'zonal' and 'noendpoints', but 'zonal' is about endpoints"),
        ("cluster_id east", "'kubernetes' has 'cluster_id' without 'multicluster', which it is for"),
        ("multicluster clusterset.local", "'multicluster' has 'clusterset.local.', expected one of cluster.local."),
    ],
)
def test_options_that_exclude_each_other(options: str, problem: str) -> None:
    assert option_problem(options) == f"Corefile:2: {problem}"


def test_reverse_zones_alone_are_refused() -> None:
    assert option_problem("", "in-addr.arpa 10.0.0.0/8") == (
        "Corefile:2: 'kubernetes' has reverse zones only, expected another one, such as cluster.local"
    )


URL = "the URL of one API server, https://HOST[:PORT] or http://HOST[:PORT]"
TLS_FILES = 'the files of a client certificate, its key and a CA, "" for one that there is not'


def from_source(options: str, directory: str = "") -> KubernetesSettings:
    block = only_block(f"kubernetes cluster.local {{\n{options}\n}}", directory)
    settings: KubernetesSettings = block.settings["kubernetes"]
    return settings


def source_problem(options: str) -> str:
    """The options start on line 3."""
    return block_problem(f"kubernetes cluster.local {{\n{options}\n}}")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A Corefile's directory with these files, all empty."""
    for name in ("config", "client.crt", "client.key", "ca.crt", "state.yaml"):
        (tmp_path / name).touch()
    return tmp_path


def test_without_a_source_it_is_the_api_server_of_our_pod() -> None:
    assert from_source("ttl 30").api == ApiSettings()
    block = only_block("kubernetes cluster.local")
    assert block.settings.get("kubernetes") is not None
    assert (block.settings["kubernetes"].api, block.settings["kubernetes"].manifests) == (ApiSettings(), ())


def test_the_line_that_names_the_source_is_known_and_makes_no_difference(directory: Path) -> None:
    by_kubeconfig = from_source("ttl 30\nkubeconfig config", str(directory)).api
    assert by_kubeconfig == ApiSettings(kubeconfig=str(directory / "config"))
    assert by_kubeconfig.place == f"{directory}/Corefile:4"
    ours = from_source("ttl 30").api
    assert ours is not None
    assert ours.place == "Corefile:2"


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ("/var/lib/state", ("/var/lib/state", 30.0, 86400.0)),
        ("/state max_age 1h", ("/state", 30.0, 3600.0)),
        ("/state max_age 1h interval 1m", ("/state", 60.0, 3600.0)),
    ],
)
def test_a_snapshot_has_a_file_and_perhaps_times(arguments: str, given: tuple[str, float, float]) -> None:
    found = from_source(f"snapshot {arguments}").snapshot
    assert found is not None
    assert (found.path, found.interval, found.max_age) == given


def test_the_file_of_a_snapshot_is_found_beside_the_corefile(directory: Path) -> None:
    found = from_source("snapshot state", str(directory)).snapshot
    assert found is not None
    assert found.path == str(directory / "state")


def test_with_manifests_there_is_no_api_server(directory: Path) -> None:
    found = from_source("manifests state.yaml", str(directory))
    assert (found.api, found.manifests) == (None, (str(directory / "state.yaml"),))


def test_manifests_are_files_and_directories_found_beside_the_corefile(directory: Path) -> None:
    (directory / "more").mkdir()
    found = from_source(f"manifests state.yaml more {directory}/more", str(directory))
    assert [os.path.relpath(path, directory) for path in found.manifests] == ["state.yaml", "more", "more"]


@pytest.mark.parametrize(
    "url",
    [
        "https://10.0.0.1:6443",
        "https://[fd00::1]:6443",
        "https://api.example.org",
        "http://localhost:8001",
        "https://rancher.example.org/k8s/clusters/c-abc",
    ],
)
def test_the_endpoint_is_a_url(url: str) -> None:
    assert from_source(f"endpoint {url}").api == ApiSettings(endpoint=url)


def test_the_files_of_tls_are_found_beside_the_corefile(directory: Path) -> None:
    found = from_source("endpoint https://a:1\ntls client.crt client.key ca.crt", str(directory)).api
    files = tuple(str(directory / name) for name in ("client.crt", "client.key", "ca.crt"))
    assert found == ApiSettings(endpoint="https://a:1", tls=(files[0], files[1], files[2]))


def test_an_empty_word_is_a_file_that_there_is_not(directory: Path) -> None:
    found = from_source('tls "" "" ca.crt\nendpoint https://a:1', str(directory)).api
    assert found == ApiSettings(endpoint="https://a:1", tls=("", "", str(directory / "ca.crt")))


@pytest.mark.parametrize(
    ("arguments", "context"), [("config", ""), ("config admin@lab", "admin@lab"), ('config "a b"', "a b")]
)
def test_a_kubeconfig_and_perhaps_a_context(directory: Path, arguments: str, context: str) -> None:
    found = from_source(f"kubeconfig {arguments}", str(directory)).api
    assert found == ApiSettings(kubeconfig=str(directory / "config"), context=context)


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("manifests", "'manifests' has no argument, expected paths of files or directories"),
        ("manifests /nowhere", "cannot read '/nowhere': No such file or directory"),
        ("endpoint", f"'endpoint' has no argument, expected {URL}"),
        ("endpoint https://a https://b", f"'endpoint' has the arguments 'https://a https://b', expected {URL}"),
        ("endpoint 10.0.0.1:6443", f"'endpoint' has '10.0.0.1:6443', expected {URL}"),
        ("endpoint unix:///run/api", f"'endpoint' has 'unix:///run/api', expected {URL}"),
        ("endpoint https://:6443", f"'endpoint' has 'https://:6443', expected {URL}"),
        ("endpoint https://a:0", f"'endpoint' has 'https://a:0', expected {URL}"),
        ("endpoint https://a:65536", f"'endpoint' has 'https://a:65536', expected {URL}"),
        ("endpoint https://me:secret@a", f"'endpoint' has 'https://me:secret@a', expected {URL}"),
        ("endpoint https://a?watch=1", f"'endpoint' has 'https://a?watch=1', expected {URL}"),
        ("tls", f"'tls' has no argument, expected {TLS_FILES}"),
        ("tls /etc/passwd /etc/passwd", f"'tls' has the arguments '/etc/passwd /etc/passwd', expected {TLS_FILES}"),
        ('tls /etc/passwd "" /etc/passwd', "'tls' has one of certificate and key, expected both or none"),
        ("tls /nowhere /etc/passwd /etc/passwd", "cannot read '/nowhere': No such file or directory"),
        ("kubeconfig", "'kubeconfig' has no argument, expected a file and perhaps the name of a context"),
        ("kubeconfig /nowhere/config", "cannot read '/nowhere/config': No such file or directory"),
        (
            "kubeconfig a b c",
            "'kubeconfig' has the arguments 'a b c', expected a file and perhaps the name of a context",
        ),
    ],
)
def test_a_wrong_source_is_refused(option: str, problem: str) -> None:
    assert source_problem(option) == f"Corefile:3: {problem}"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("manifests .\nkubeconfig /etc/passwd", "has both 'manifests' and 'kubeconfig', expected one of them"),
        ("endpoint https://a\nmanifests .", "has both 'manifests' and 'endpoint', expected one of them"),
        ("endpoint https://a\nkubeconfig /etc/passwd", "has both 'kubeconfig' and 'endpoint', expected one of them"),
        ("manifests .\nsnapshot /state", "has both 'manifests' and 'snapshot', which is for an API server"),
        ("tls /etc/passwd /etc/passwd /etc/passwd", "has 'tls' without 'endpoint', which it is for"),
        (
            "kubeconfig /etc/passwd\ntls /etc/passwd /etc/passwd /etc/passwd",
            "has 'tls' without 'endpoint', which it is for",
        ),
    ],
)
def test_there_is_one_source(options: str, problem: str) -> None:
    assert source_problem(options) == f"Corefile:2: 'kubernetes' {problem}"
