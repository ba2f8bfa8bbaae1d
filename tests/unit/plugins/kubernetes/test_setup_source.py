"""Where `kubernetes` takes the cluster from: `manifests`, `endpoint` and `tls`, `kubeconfig`, or the Pod we run in."""

import os
from pathlib import Path

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.kube.client.contract import ApiSettings
from topodns.plugins.kubernetes.settings import KubernetesSettings

URL = "the URL of one API server, https://HOST[:PORT] or http://HOST[:PORT]"
TLS_FILES = 'the files of a client certificate, its key and a CA, "" for one that there is not'


def kubernetes(options: str, directory: str = "") -> KubernetesSettings:
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
    assert kubernetes("ttl 30").api == ApiSettings()
    block = only_block("kubernetes cluster.local")
    assert block.settings.get("kubernetes") is not None
    assert (block.settings["kubernetes"].api, block.settings["kubernetes"].manifests) == (ApiSettings(), ())


def test_the_line_that_names_the_source_is_known_and_makes_no_difference(directory: Path) -> None:
    by_kubeconfig = kubernetes("ttl 30\nkubeconfig config", str(directory)).api
    assert by_kubeconfig == ApiSettings(kubeconfig=str(directory / "config"))
    assert by_kubeconfig.place == f"{directory}/Corefile:4"
    ours = kubernetes("ttl 30").api
    assert ours is not None
    assert ours.place == "Corefile:2"


def test_with_manifests_there_is_no_api_server(directory: Path) -> None:
    found = kubernetes("manifests state.yaml", str(directory))
    assert (found.api, found.manifests) == (None, (str(directory / "state.yaml"),))


def test_manifests_are_files_and_directories_found_beside_the_corefile(directory: Path) -> None:
    (directory / "more").mkdir()
    found = kubernetes(f"manifests state.yaml more {directory}/more", str(directory))
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
    assert kubernetes(f"endpoint {url}").api == ApiSettings(endpoint=url)


def test_the_files_of_tls_are_found_beside_the_corefile(directory: Path) -> None:
    found = kubernetes("endpoint https://a:1\ntls client.crt client.key ca.crt", str(directory)).api
    files = tuple(str(directory / name) for name in ("client.crt", "client.key", "ca.crt"))
    assert found == ApiSettings(endpoint="https://a:1", tls=(files[0], files[1], files[2]))


def test_an_empty_word_is_a_file_that_there_is_not(directory: Path) -> None:
    found = kubernetes('tls "" "" ca.crt\nendpoint https://a:1', str(directory)).api
    assert found == ApiSettings(endpoint="https://a:1", tls=("", "", str(directory / "ca.crt")))


@pytest.mark.parametrize(
    ("arguments", "context"), [("config", ""), ("config admin@lab", "admin@lab"), ('config "a b"', "a b")]
)
def test_a_kubeconfig_and_perhaps_a_context(directory: Path, arguments: str, context: str) -> None:
    found = kubernetes(f"kubeconfig {arguments}", str(directory)).api
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
        ("tls /etc/passwd /etc/passwd /etc/passwd", "has 'tls' without 'endpoint', which it is for"),
        (
            "kubeconfig /etc/passwd\ntls /etc/passwd /etc/passwd /etc/passwd",
            "has 'tls' without 'endpoint', which it is for",
        ),
    ],
)
def test_there_is_one_source(options: str, problem: str) -> None:
    assert source_problem(options) == f"Corefile:2: 'kubernetes' {problem}"
