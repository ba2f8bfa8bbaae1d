"""Kubernetes' own end-to-end tests: the test binary `e2e.test`, images for its Pods, and runs of its specs on a lab.

`python -m tests.support.kube.kubernetes_tests` builds what is missing, from the Go module proxy and Debian's packages.
"""

import json
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from re import escape, finditer, match
from typing import Any, Final

from tests.kubelab.cache import filling, key_of, say
from tests.kubelab.debian import debian_layer, planned_layer
from tests.kubelab.images import IMAGES, Image, write_image
from tests.kubelab.lab import Lab
from tests.kubelab.programs import COREDNS, KUBERNETES_TESTS, PAUSE, go_command, make_build, programs

_PROCESSES: Final = 6  # specs at a time, where they are not serial
_PATIENCE: Final = "90m"  # for one run
_LAYERS: Final = ("python", "dnstools", "shelltools")


@dataclass(frozen=True, slots=True)
class SpecResult:
    """Of one spec. `state` is Ginkgo's: passed, skipped (by the spec itself, the message says why), failed, ..."""

    state: str
    message: str
    seconds: float


def build_tests() -> None:
    """Build the programs and write the images that are missing. Raises OSError or CalledProcessError."""
    with filling():
        make_build(KUBERNETES_TESTS)
        if any(not archive.exists() for archive in archives()):
            IMAGES.mkdir(parents=True, exist_ok=True)
            for archive, image in zip(archives(), _images(), strict=True):
                write_image(archive, image)


def missing_tests() -> list[str]:
    """The programs and images that `build_tests` would make."""
    return KUBERNETES_TESTS.missing + [archive.name for archive in archives() if not archive.exists()]


def archives() -> list[Path]:
    """Where the images of `_images` are, or will be: paths that change with their content."""
    builds = (KUBERNETES_TESTS, COREDNS, PAUSE)
    key = key_of(*(build.folder.name for build in builds), *(planned_layer(name).tar.name for name in _LAYERS))
    return [IMAGES / f"{kind}-{KUBERNETES_TESTS.version}-{key}.tar" for kind in ("agnhost", "busybox", "pause")]


def spec_names() -> list[str]:
    """The names of all specs of `e2e.test`."""
    # FILE:LINE: NAME
    return [found[1] for found in finditer(r"(?m)^\s+\S+\.go:\d+: (.+)$", _asked("--list-tests"))]


def run_specs(lab: Lab, directory: Path, names: Collection[str]) -> dict[str, SpecResult]:
    """Run the specs with these names against the lab; the result of each that began.

    A spec that fails does not raise. The folder gets Ginkgo's report (JSON) and the whole output.
    """
    folder = KUBERNETES_TESTS.folder
    ginkgo, tests = str(folder / "ginkgo"), str(folder / "e2e.test")
    # What is matched is the name of the suite, a blank, the name of the spec.
    focus = [f"--focus= {escape(name)}$" for name in names]
    limits = [f"--procs={_PROCESSES}", f"--timeout={_PATIENCE}"]
    output = ["--no-color", "--silence-skips", "--json-report=report.json", f"--output-dir={directory}"]
    settings = {
        "kubeconfig": lab.kubeconfig,
        "kubectl-path": programs()["kubectl"].resolve(),  # a spec copies it into a Pod: no link
        "provider": "skeleton",
        "node-os-distro": "debian",
        "disable-log-dump": "true",
    }
    words = [f"--{name}={value}" for name, value in settings.items()]
    command = [ginkgo, "run", *limits, *output, *focus, tests, "--", *words]
    with open(directory / "output.log", "wb") as log:
        subprocess.run(command, cwd=directory, stdout=log, stderr=log, check=False)
    return _results(directory / "report.json")


def _results(report: Path) -> dict[str, SpecResult]:
    """Of a report of Ginkgo, without the specs that its filter excludes; empty where the run ended without one."""
    suites: list[dict[str, Any]] = json.loads(report.read_text()) if report.exists() else []
    specs = [each for suite in suites for each in suite["SpecReports"] or () if each["LeafNodeType"] == "It"]
    found = {" ".join([*each["ContainerHierarchyTexts"], each["LeafNodeText"]]): _result(each) for each in specs}
    return {name: outcome for name, outcome in found.items() if outcome.state != "skipped" or outcome.message}


def _result(spec: Mapping[str, Any]) -> SpecResult:
    return SpecResult(spec["State"], spec.get("Failure", {}).get("Message", ""), spec["RunTime"] / 1e9)


def _images() -> list[Image]:
    """Those images of `e2e.test` that the specs of tests/conformance use, assembled without a registry.

    `agnhost` and `glibc-dns-testing` are one image: Debian (glibc) with shells, DNS clients and `agnhost`, and CoreDNS
    at the version of the lab, which specs start as an upstream.
    """
    named: dict[str, list[str]] = {}
    for name in sorted(_asked("--list-images").split()):
        if found := match(r"registry\.k8s\.io/(?:e2e-test-images/)?([a-z-]+):", name):
            named.setdefault(found[1], []).append(name)
    layers = [debian_layer(name) for name in _LAYERS]
    certificate = _sources() / "test/images/agnhost/porter/localhost"
    added = [
        (KUBERNETES_TESTS.folder / "agnhost", "/"),
        (COREDNS.folder / "coredns", "/"),
        (certificate.with_suffix(".crt"), "/"),
        (certificate.with_suffix(".key"), "/"),
    ]
    working, busybox, pause = named["agnhost"] + named["glibc-dns-testing"], named["busybox"], named["pause"]
    return [
        Image(working[0], layers, added, working[1:], entrypoint=["/agnhost"], command=["pause"]),
        Image(busybox[0], layers[:1], more_names=busybox[1:], command=["sh"]),
        Image(pause[0], add=[(PAUSE.folder / "pause", "/")], more_names=pause[1:], entrypoint=["/pause"]),
    ]


def _asked(flag: str) -> str:
    """What `e2e.test` prints for a flag with which it runs no spec."""
    command = [str(KUBERNETES_TESTS.folder / "e2e.test"), flag]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _sources() -> Path:
    """The source of Kubernetes, in Go's module cache."""
    command = [go_command(), "list", "-m", "-f", "{{.Dir}}", KUBERNETES_TESTS.module]
    done = subprocess.run(command, cwd=KUBERNETES_TESTS.source, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


if __name__ == "__main__":
    try:
        build_tests()
    except (OSError, subprocess.CalledProcessError) as problem:
        say(f"Kubernetes' tests could not be built here: {problem}")
