"""The program kubectl as the plugin runs it: its output, its failures, and the end of each process."""

import time
from pathlib import Path

import pytest

from tests.support.event_loops import PATIENCE
from tests.support.fake_kubectl import FakeKubectl, pod
from topodns.cli import kubectl_client
from topodns.cli.kubectl_client import Kubectl, KubectlError

Quiet = pytest.CaptureFixture[str]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKubectl:
    fake = FakeKubectl(tmp_path)
    monkeypatch.setenv("PATH", f"{fake.path}:/usr/bin:/bin")
    return fake


def test_without_kubectl_the_problem_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KubectlError, match="found no program kubectl in PATH"):
        Kubectl()


def test_get_gives_the_object_with_the_users_flags(fake: FakeKubectl) -> None:
    fake.script([pod("a")])
    found = Kubectl(["--context=lab"]).get("pods", "--namespace=kube-system")
    assert [each["metadata"]["name"] for each in found["items"]] == ["a"]
    assert fake.calls()[0][:2] == ["--context=lab", "get"]


@pytest.mark.parametrize("output", ["", "no JSON", "[]"])
def test_get_refuses_what_is_no_object(fake: FakeKubectl, output: str) -> None:
    fake.script(output=output)
    with pytest.raises(KubectlError, match="`kubectl get pods` failed with status 0"):
        Kubectl().get("pods")


def test_get_names_the_call_that_failed_and_kubectl_writes_why(fake: FakeKubectl, capfd: Quiet) -> None:
    with pytest.raises(KubectlError, match="`kubectl get pod none` failed with status 1"):
        Kubectl().get("pod", "none")
    assert 'pods "none" not found' in capfd.readouterr().err


def test_a_call_has_a_deadline(fake: FakeKubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    (fake.path / "kubectl").write_text("#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setattr(kubectl_client, "CALL_TIMEOUT", 0.2)
    with pytest.raises(KubectlError, match="`kubectl get` took more than 0 s"):
        Kubectl().get("pods")


WITH_PLUGIN = """#!/bin/sh
sleep 600 &
echo $! >"{folder}/plugin.tmp"
mv "{folder}/plugin.tmp" "{folder}/plugin"
{then}
"""


def lives(pid: int) -> bool:
    """Whether a process runs: one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def until_ended(pid: int) -> None:
    end = time.monotonic() + PATIENCE
    while lives(pid):
        assert time.monotonic() < end, "the process still runs"
        time.sleep(0.01)


def test_the_credential_plugin_of_a_call_that_takes_too_long_ends_too(
    fake: FakeKubectl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (fake.path / "kubectl").write_text(WITH_PLUGIN.format(folder=tmp_path, then="wait"))
    monkeypatch.setattr(kubectl_client, "CALL_TIMEOUT", 1.0)
    with pytest.raises(KubectlError, match="`kubectl get` took more than 1 s"):
        Kubectl().get("pods")
    until_ended(int((tmp_path / "plugin").read_text()))


@pytest.mark.parametrize("then", ["wait", "trap '' TERM; wait; wait; sleep 600"], ids=["ends", "ignores SIGTERM"])
def test_the_credential_plugin_of_a_port_forward_ends_with_it(
    fake: FakeKubectl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, then: str
) -> None:
    (fake.path / "kubectl").write_text(WITH_PLUGIN.format(folder=tmp_path, then=then))
    monkeypatch.setattr(kubectl_client, "FORWARD_TIMEOUT", 1.0)
    monkeypatch.setattr(kubectl_client, "STOP_TIMEOUT", 0.2)
    with (
        pytest.raises(KubectlError, match="`kubectl port-forward` opened no port within 1 s"),
        Kubectl().port_forward("kube-system", "topodns-1", 8181),
    ):
        raise AssertionError
    until_ended(int((tmp_path / "plugin").read_text()))


def test_a_port_forward_that_closes_its_output_and_goes_on_is_a_problem_of_kubectl(
    fake: FakeKubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fake.path / "kubectl").write_text("#!/bin/sh\nexec >&-\nexec sleep 600\n")
    monkeypatch.setattr(kubectl_client, "STOP_TIMEOUT", 0.1)
    with (
        pytest.raises(KubectlError, match="`kubectl port-forward` closed its output before it opened a port"),
        Kubectl().port_forward("kube-system", "topodns-1", 8181),
    ):
        raise AssertionError


def test_a_program_that_cannot_be_run_is_a_problem_of_kubectl(fake: FakeKubectl) -> None:
    (fake.path / "kubectl").write_text("#!/nowhere\n")
    with pytest.raises(KubectlError, match="kubectl cannot be run: "):
        Kubectl().get("pods")
    with pytest.raises(KubectlError, match="kubectl cannot be run: "), Kubectl().port_forward("a", "b", 1):
        raise AssertionError
    assert Kubectl().is_allowed("list", "pods")


def test_a_right_that_cannot_be_found_out_counts_as_given_without_another_error(
    fake: FakeKubectl, capfd: Quiet
) -> None:
    (fake.path / "kubectl").write_text("#!/bin/sh\necho no connection >&2\nexit 1\n")
    assert Kubectl().is_allowed("list", "pods")
    assert capfd.readouterr().err == ""


def test_what_rbac_denies_is_not_allowed(fake: FakeKubectl) -> None:
    fake.script(forbidden=["pods"])
    assert not Kubectl().is_allowed("list", "pods", "--namespace=a")
    assert Kubectl().is_allowed("list", "services")


def test_a_port_forward_gives_an_address_and_ends_with_its_context(fake: FakeKubectl) -> None:
    fake.script(forwards_to="127.0.0.1:1")
    with Kubectl().port_forward("kube-system", "topodns-1", 8181) as server:
        assert server.startswith("127.0.0.1:")
        assert len(fake.running()) == 1
    assert fake.running() == []


def test_a_port_forward_ends_where_its_user_fails(fake: FakeKubectl) -> None:
    fake.script(forwards_to="127.0.0.1:1")
    with pytest.raises(ZeroDivisionError), Kubectl().port_forward("kube-system", "topodns-1", 8181):
        raise ZeroDivisionError
    assert (len(fake.forwarding()), fake.running()) == (1, [])


def test_a_port_forward_that_ignores_sigterm_is_killed(fake: FakeKubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl_client, "STOP_TIMEOUT", 0.1)
    fake.script(forwards_to="127.0.0.1:1", stubborn=True)
    with Kubectl().port_forward("kube-system", "topodns-1", 8181):
        pass
    assert (len(fake.forwarding()), fake.running()) == (1, [])


def test_a_port_forward_that_says_nothing_has_a_deadline(fake: FakeKubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl_client, "FORWARD_TIMEOUT", 0.3)
    fake.script(forwards_to="")
    with (
        pytest.raises(KubectlError, match="`kubectl port-forward` opened no port within 0 s"),
        Kubectl().port_forward("kube-system", "topodns-1", 8181),
    ):
        raise AssertionError
    assert fake.running() == []


def test_a_port_forward_that_prints_something_else_is_bounded(
    fake: FakeKubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fake.path / "kubectl").write_text("#!/bin/sh\nexec yes Forwarding\n")
    with (
        pytest.raises(KubectlError, match="opened no port"),
        Kubectl().port_forward("kube-system", "topodns-1", 8181),
    ):
        raise AssertionError


def test_a_port_forward_that_ends_at_once_is_named_with_its_status(fake: FakeKubectl) -> None:
    with (
        pytest.raises(KubectlError, match="`kubectl port-forward` ended with status 1"),
        Kubectl().port_forward("kube-system", "topodns-1", 8181),
    ):
        raise AssertionError
