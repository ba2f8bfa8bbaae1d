"""`helm test` and the NOTES: what the Pod of the test checks, and when it stays; CoreDNS is named where it may be."""

import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from dnslib import QTYPE, RR, DNSRecord

from tests.support.chart.helm import CHART, NAMESPACE, RELEASE, Object, Values, helm, rendered_text

SERVICE, API_SERVER = "10.96.0.10", "10.96.0.1"
NEW_CLUSTER: Values = {"service": {"clusterIP": SERVICE}}
IN_ITS_PLACE: Values = {"service": {"create": False}}
BESIDE: Values = {"mode": "beside"}
NOTES = 'notes: {{ include (print $.Template.BasePath "/NOTES.txt") . | toJson }}\n'


def hook_pod(values: Values) -> Object:
    """The Pod of `helm test`."""
    objects = [each for each in yaml.safe_load_all(rendered_text(values)) if each]
    (found,) = (each for each in objects if "helm.sh/hook" in each["metadata"].get("annotations", {}))
    assert isinstance(found, dict)
    return found


class Dns:
    """Plays the Service, whose replies are `by_service`, and the resolver of the Pod's C library.

    None is no reply.
    """

    def __init__(self, by_service: str | None, by_resolv_conf: str | None) -> None:
        self._by_service, self._by_resolv_conf = by_service, by_resolv_conf
        self.looked_up: list[str] = []

    def send(self, query: DNSRecord, server: str, *_: object, **options: object) -> bytes:
        assert server == SERVICE
        assert options["ipv6"] is False
        if self._by_service is None:
            raise TimeoutError("timed out")
        reply = query.reply()
        if self._by_service and query.q.qtype == QTYPE.A:
            reply.add_answer(*RR.fromZone(f"{query.q.qname} 5 A {self._by_service}"))
        return bytes(reply.pack())

    def getaddrinfo(self, name: str, _port: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        self.looked_up.append(name)
        if self._by_resolv_conf is None:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return [(socket.AF_INET, kind, 0, "", (self._by_resolv_conf, 0)) for kind in (1, 2, 3)]


def status(values: Values, dns: Dns, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit status of the Pod's script, run here."""
    (container,) = hook_pod(values)["spec"]["containers"]
    *python, script = container["command"]
    assert python == ["python3", "-c"]
    for variable in container["env"]:
        monkeypatch.setenv(variable["name"], SERVICE if variable["name"] == "SERVER" else variable["value"])
    monkeypatch.setattr(DNSRecord, "send", lambda query, *words, **options: dns.send(query, *words, **options))
    monkeypatch.setattr(socket, "getaddrinfo", dns.getaddrinfo)
    with pytest.raises(SystemExit) as ended:
        exec(compile(script, "ask", "exec"), {})
    return int(ended.value.code or 0)


@pytest.mark.parametrize("values", [NEW_CLUSTER, IN_ITS_PLACE, BESIDE])
def test_the_pod_of_helm_test_goes_when_it_has_succeeded_and_stays_when_it_has_failed(values: Values) -> None:
    annotations = hook_pod(values)["metadata"]["annotations"]
    assert set(annotations["helm.sh/hook-delete-policy"].split(",")) == {"before-hook-creation", "hook-succeeded"}


@pytest.mark.parametrize(
    ("by_service", "by_resolv_conf", "fails"),
    [
        (API_SERVER, API_SERVER, False),
        (API_SERVER, None, True),
        (API_SERVER, "192.0.2.1", True),
        ("", API_SERVER, True),
        (None, API_SERVER, True),
    ],
    ids=["as it should be", "clusterDNS does not answer", "clusterDNS is another server", "no address", "no reply"],
)
def test_as_the_cluster_dns_it_has_to_answer_by_the_service_and_by_resolv_conf_alike(
    by_service: str | None,
    by_resolv_conf: str | None,
    fails: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    dns = Dns(by_service, by_resolv_conf)
    assert hook_pod(NEW_CLUSTER)["spec"]["dnsPolicy"] == "ClusterFirst"
    assert status(NEW_CLUSTER, dns, monkeypatch) == fails
    said = capsys.readouterr().out
    assert said.endswith(f"which does not answer as the Service at {SERVICE} does.\n") == (fails and bool(by_service))
    assert dns.looked_up == (["kubernetes.default.svc.cluster.local."] if by_service else [])


def test_beside_another_cluster_dns_the_answers_of_that_one_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    dns = Dns(API_SERVER, None)
    assert hook_pod(BESIDE)["spec"]["dnsPolicy"] == "Default"
    assert status(BESIDE, dns, monkeypatch) == 0
    assert dns.looked_up == []


def test_a_name_outside_has_to_have_an_address_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {**BESIDE, "tests": {"outsideName": "example.org"}}
    assert status(values, Dns(API_SERVER, None), monkeypatch) == 0
    assert "example.org from the Service at 10.96.0.10 over TCP: 10.96.0.1\n" in capsys.readouterr().out
    assert status(values, Dns("", None), monkeypatch) == 1


@pytest.fixture
def notes(tmp_path: Path) -> Callable[..., str]:
    """The NOTES of the chart with these values, in one line."""
    chart = shutil.copytree(CHART, tmp_path / "topodns")
    (chart / "templates/notes.yaml").write_text(NOTES)

    def notes(values: Values, namespace: str = NAMESPACE) -> str:
        command = helm("template", RELEASE, chart, "--namespace", namespace, "--values", "-")
        command += ["--show-only", "templates/notes.yaml"]
        run = subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, check=True)
        return " ".join(yaml.safe_load(run.stdout)["notes"].split())

    return notes


@pytest.mark.parametrize(
    ("values", "names_coredns"),
    [(NEW_CLUSTER, False), (IN_ITS_PLACE, True), (BESIDE, False)],
    ids=["new cluster", "in its place", "beside"],
)
def test_the_notes_name_coredns_only_where_the_service_was_there_before(
    values: Values, names_coredns: bool, notes: Callable[..., str]
) -> None:
    said = notes(values)
    assert f"helm -n {NAMESPACE} test {RELEASE}" in said
    assert ("coredns" in said.lower()) == names_coredns
    assert "WARNING" not in said


def test_the_notes_have_the_address_of_the_cluster_dns(notes: Callable[..., str]) -> None:
    assert f"Service kube-system/kube-dns at {SERVICE}." in notes(NEW_CLUSTER)


def test_the_notes_warn_of_a_namespace_other_than_kube_system(notes: Callable[..., str]) -> None:
    warning = "WARNING: the namespace is dns, not kube-system."
    for values in (NEW_CLUSTER, IN_ITS_PLACE, BESIDE):
        assert f"{warning} " in notes(values, "dns")
    looked_for = "Tools, dashboards and network policies look for the cluster DNS in kube-system."
    assert looked_for in notes(NEW_CLUSTER, "dns")
    assert "kube-system/kube-dns finds Pods of kube-system only, so it leads to none" in notes(IN_ITS_PLACE, "dns")


def test_the_notes_have_the_effect_of_the_admission_policy(notes: Callable[..., str]) -> None:
    of_all = "Headless Services with invalid topology keys, in all namespaces:"
    denies_nothing = "Beside the cluster DNS no request is denied, unless `admissionPolicy.actions` has Deny."
    assert f"{of_all} Warn. {denies_nothing}" in notes(BESIDE)
    assert f"{of_all} Deny." in notes(NEW_CLUSTER)
    told_to = notes({**BESIDE, "admissionPolicy": {"actions": ["Deny"]}})
    assert (f"{of_all} Deny." in told_to, denies_nothing in told_to) == (True, False)
    assert of_all not in notes({**BESIDE, "admissionPolicy": {"enabled": False}})


def test_the_notes_warn_of_a_corefile_without_topology(notes: Callable[..., str]) -> None:
    warning = "WARNING: `servers` is without the plugin topology"
    plugins = [{"name": "health"}, {"name": "ready"}]
    assert warning in notes({**BESIDE, "servers": [{"plugins": plugins}]})
    imported = [*plugins, {"name": "import", "parameters": "/etc/coredns/custom/*"}]
    assert warning not in notes({**BESIDE, "servers": [{"plugins": imported}]})
