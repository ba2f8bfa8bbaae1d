"""The programs that are measured: topodns, CoreDNS, built once where Go is, and Debian's unbound, BIND and NSD."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from bench.compile import CACHE
from bench.proc import free_port

Command = tuple[str | Path, ...]

COREDNS: Final = "1.14.7"
TOPODNS: Final[Command] = (sys.executable, "-m", "topodns")

_HERE: Final = "127.0.0.1"
_BUILT: Final = CACHE / f"coredns-{COREDNS}" / "coredns"
_OF_KUBELAB: Final = (CACHE.parents[1] / "kubelab" / "programs", f"coredns-{COREDNS}-*/coredns")
_PACKAGES: Final = {"unbound": ("unbound", "-V"), "named": ("bind9", "-v"), "nsd": ("nsd", "-v")}
_NAMES: Final = {"unbound": "unbound", "named": "BIND", "nsd": "NSD"}
_VERSION: Final = re.compile(r"\d+(\.\d+)+")


def server_command(corefile: Path, port: int, program: Command = TOPODNS) -> Command:
    """The command of a server that reads this Corefile and answers on this port."""
    return (*program, "-conf", corefile, "-dns.port", str(port))


def node_cache_command(
    template: Path, port: int, *flags: str, program: Command = TOPODNS, address: str = _HERE, server: str = _HERE
) -> Command:
    """The command of topodns's node cache with this template, on this address and port, without a link and rules.

    `server`: the address of the cluster DNS. Other files are beside the template.
    """
    return (
        *("env", f"KUBE_DNS_UPSTREAM_SERVICE_HOST={server}", *program, "node-cache", *flags),
        *(f"-localip={address}", f"-dns.port={port}", "-setupinterface=false", "-setupiptables=false"),
        *("-upstreamsvc=kube-dns-upstream", f"-kubednscm={template.parent / 'kube-dns'}"),
        *(f"-basecorefile={template}", f"-conf={template.parent / 'Corefile.made'}"),
        f"-metrics-listen-address={address}:{free_port()}",
    )


class Program(NamedTuple):
    """A server: its name with its version, and the path of its program."""

    title: str
    path: Path


@cache
def find_coredns(say: Callable[[str], None]) -> Program | None:
    """CoreDNS in the user's cache folder, where Go builds it once; None, and a line to `say`, if that fails."""
    path = _built_before()
    if path is None:
        go = shutil.which("go")
        if go is None:
            say(f"no CoreDNS {COREDNS} beside topodns: there is no Go to build it with")
            return None
        say(f"building CoreDNS {COREDNS}, once: some minutes")
        problem = _build(go)
        if problem:
            say(f"no CoreDNS {COREDNS} beside topodns: {problem}")
            return None
        path = _BUILT
    return Program(f"CoreDNS {COREDNS}", path)


def find_debian(name: str, say: Callable[[str], None]) -> Program | None:
    """`unbound`, `named` or `nsd`; None, and a line to `say` with its package, if it is not installed.

    Debian has them in /usr/sbin, which is not on every user's PATH.
    """
    package, flag = _PACKAGES[name]
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if path is None:
        say(f"no {name} (Debian package {package}): it is left out")
        return None
    done = subprocess.run((path, flag), capture_output=True, text=True, check=False)
    version = _VERSION.search(done.stdout + done.stderr)
    return Program(f"{_NAMES[name]} {version[0] if version else ''}".rstrip(), Path(path))


def _built_before() -> Path | None:
    folder, pattern = _OF_KUBELAB
    return next((path for path in (_BUILT, *folder.glob(pattern)) if os.access(path, os.X_OK)), None)


def _build(go: str) -> str:
    """Build CoreDNS. Returns the last line of Go's error, "" without an error."""
    environment = {**os.environ, "GOBIN": str(_BUILT.parent), "CGO_ENABLED": "0"}
    module = f"github.com/coredns/coredns@v{COREDNS}"
    done = subprocess.run((go, "install", module), env=environment, capture_output=True, text=True, check=False)
    return (done.stderr.strip().splitlines() or ["go install failed"])[-1] if done.returncode else ""
