"""The flags of `topodns locator`, and its refusals."""

import sys
from pathlib import Path

import pytest

from topodns.cli import main as cli
from topodns.cluster.model import ObjectKey
from topodns.corefile.arguments import Address
from topodns.locator.locator_flags import LocatorFlags, parse_locator_flags
from topodns.locator.objects import NODE_LOCATORS, POD_LOCATORS
from topodns.locator.projection import LABELS

Captured = pytest.CaptureFixture[str]


def test_without_flags_it_writes_nodelocators_with_the_usual_labels() -> None:
    lease = ObjectKey("kube-system", "topodns-locator")
    assert parse_locator_flags([]) == LocatorFlags(NODE_LOCATORS, "", "", LABELS, 0.5, lease, None)


def test_every_flag_counts() -> None:
    given = (
        "--kind podlocator --kubeconfig f --context c --label-keys example.com/rack,pool, --coalesce 2 "
        "--lease dns/one --metrics [::1]:9153"
    )
    assert parse_locator_flags(given.split()) == LocatorFlags(
        POD_LOCATORS,
        "f",
        "c",
        (*LABELS, "example.com/rack", "pool"),
        2.0,
        ObjectKey("dns", "one"),
        Address("::1", 9153),
    )
    assert parse_locator_flags(["--metrics", ":9153"]).metrics == Address("", 9153)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("--kind pod", "invalid choice: 'pod'"),
        ("--coalesce -1", "'-1', expected seconds from 0 to 60"),
        ("--coalesce nan", "'nan', expected seconds from 0 to 60"),
        ("--coalesce soon", "'soon', expected seconds from 0 to 60"),
        ("--lease topodns", "'topodns', expected NAMESPACE/NAME such as kube-system/topodns-locator"),
        ("--lease a/b/c", "'a/b/c', expected NAMESPACE/NAME"),
        ("--label-keys a,b/c/d", "'b/c/d' is no label key, expected one such as example.com/rack"),
        ("--label-keys " + ",".join(f"k{number}" for number in range(33)), "33 keys, expected at most 32"),
        ("--metrics 9153", "'9153', expected HOST:PORT or :PORT"),
        ("--metrics :0", "':0', expected HOST:PORT or :PORT"),
        ("--metrics :65536", "':65536', expected HOST:PORT or :PORT"),
        ("--kin nodelocator", "unrecognized arguments"),
    ],
)
def test_wrong_usage_is_named_with_what_was_expected(arguments: str, problem: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_locator_flags(arguments.split())
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


def test_an_unusable_kubeconfig_ends_it_with_the_file_and_the_reason(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topodns.cli.serve.handle_signals_at_start", lambda: None)
    monkeypatch.setattr("topodns.locator.process.start_logging", lambda *_: None)
    assert cli.main(["locator", "--kubeconfig", str(tmp_path / "absent")]) == 1
    assert capsys.readouterr().err == f"cannot read {tmp_path}/absent: No such file or directory\n"


def test_without_the_kubernetes_package_it_names_the_image_that_has_it(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topodns.cli.serve.handle_signals_at_start", lambda: None)
    for loaded in [name for name in sys.modules if name.partition(".")[0] == "kubernetes"]:
        monkeypatch.delitem(sys.modules, loaded)
    for module in ("kube.client.kubeconfig", "kube.client.official_client", "locator.leader_election"):
        monkeypatch.delitem(sys.modules, f"topodns.{module}", raising=False)
    for module in ("locator.controller", "locator.refusals", "locator.process"):
        monkeypatch.delitem(sys.modules, f"topodns.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    assert cli.main(["locator"]) == 1
    assert capsys.readouterr().err == (
        "topodns locator needs the Python package kubernetes, which is not installed here: use the image "
        "topodns-tools, or topodns from its package\n"
    )
