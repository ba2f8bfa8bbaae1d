"""The identity inside a Pod."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from topodns.kube.client import connect
from topodns.kube.client.contract import ApiError, ApiSettings
from topodns.kube.client.credentials import ServiceAccount, checked, file_states

ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text(" abc\n")
    (tmp_path / "ca.crt").write_text("")
    return tmp_path


def problem_of(directory: Path, environment: Mapping[str, str] = ENVIRONMENT) -> str:
    with pytest.raises(ApiError) as caught:
        checked(ServiceAccount(str(directory), environment).access())
    assert caught.value.status == 0
    return str(caught.value)


def test_the_server_is_the_environment_s_and_the_token_the_file_s(mounted: Path) -> None:
    found = ServiceAccount(str(mounted), ENVIRONMENT).access()
    assert (found.server, found.authorization, found.ca) == ("https://10.96.0.1:443", "Bearer abc", f"{mounted}/ca.crt")


def test_an_ipv6_host_gets_its_brackets(mounted: Path) -> None:
    environment = {**ENVIRONMENT, "KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert ServiceAccount(str(mounted), environment).access().server == "https://[fd00::1]:443"


@pytest.mark.parametrize("name", ENVIRONMENT)
@pytest.mark.parametrize("value", ["", None])
def test_outside_of_a_pod_the_missing_settings_are_named(mounted: Path, name: str, value: str | None) -> None:
    environment = {key: found for key, found in {**ENVIRONMENT, name: value}.items() if found is not None}
    assert problem_of(mounted, environment) == (
        "not in a Pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set): "
        "'kubeconfig' or 'endpoint' is needed"
    )


def test_the_namespace_is_the_pod_s_or_none(mounted: Path) -> None:
    assert ServiceAccount(str(mounted), ENVIRONMENT).namespace == ""
    (mounted / "namespace").write_text("dns\n")
    assert ServiceAccount(str(mounted), ENVIRONMENT).namespace == "dns"


def test_a_pod_without_a_mounted_account_says_so(tmp_path: Path) -> None:
    assert problem_of(tmp_path) == f"cannot read the service account token {tmp_path}/token: No such file or directory"


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        (b"\n", "is empty"),
        (b"a\xff", "not UTF-8"),
        (b"a\nHost: b", "characters that no HTTP header can carry"),
        ("naïve".encode(), "characters that no HTTP header can carry"),
    ],
)
def test_a_token_that_is_none_is_refused(mounted: Path, token: bytes, problem: str) -> None:
    (mounted / "token").write_bytes(token)
    assert problem in problem_of(mounted)


def test_a_rotated_file_makes_another_access(mounted: Path) -> None:
    account = ServiceAccount(str(mounted), ENVIRONMENT)
    before = account.access()
    assert account.access() == before
    (mounted / "new").write_text("another authority")
    (mounted / "new").rename(mounted / "ca.crt")
    assert account.access() != before


def test_a_file_that_cannot_be_seen_has_no_state(tmp_path: Path) -> None:
    assert file_states(["", str(tmp_path / "none")]) == ()


def test_connecting_outside_of_a_pod_fails_at_once(tmp_path: Path) -> None:
    with pytest.raises(ApiError, match="not in a Pod"):
        asyncio.run(connect(ApiSettings(), ServiceAccount(str(tmp_path), {})))
