"""What is measured: topodns, and beside it CoreDNS where it is at hand or can be built."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.compile import CACHE

COREDNS: Final = "1.14.7"

_BUILT: Final = CACHE / f"coredns-{COREDNS}" / "coredns"
_OF_KUBELAB: Final = (CACHE.parents[1] / "kubelab" / "programs", f"coredns-{COREDNS}-*/coredns")

# The sockets open after a second, so that most of the first sync is seen by clients. Without Pods none are asked for.
_COREFILE: Final = """\
cluster.local {{
    bind 127.0.0.1
    errors
    kubernetes cluster.local {{
        endpoint {url}
        pods {pods}
        startup_timeout 1s
    }}
    {own}
    loadbalance
    prometheus 127.0.0.1:0
}}
"""


@dataclass(frozen=True)
class Server:
    """A program that takes CoreDNS's flags and Corefile; `own` is a line that only it knows.

    `kinds` is how many it lists, Pods apart.
    """

    title: str
    program: tuple[str | Path, ...]
    kinds: int
    own: str = ""

    def command(self, corefile: Path, port: int) -> tuple[str | Path, ...]:
        return (*self.program, "-conf", corefile, "-dns.port", str(port))

    def corefile(self, url: str, with_pods: bool) -> str:
        return _COREFILE.format(url=url, pods="verified" if with_pods else "disabled", own=self.own)


_TOPOLOGY: Final = "topology {\n        locate nodes podcidr slices\n    }"

TOPODNS: Final = Server("topodns", (sys.executable, "-m", "topodns"), 4, _TOPOLOGY)


def find_coredns(say: Callable[[str], None]) -> Server | None:
    """From the user's cache folder, where it is built once; None, with a line that says why, where it cannot be had."""
    program = _built_before()
    if program is None:
        go = shutil.which("go")
        if go is None:
            say(f"no CoreDNS {COREDNS} beside topodns: there is no Go to build it with")
            return None
        say(f"building CoreDNS {COREDNS}, once: some minutes")
        problem = _build(go)
        if problem:
            say(f"no CoreDNS {COREDNS} beside topodns: {problem}")
            return None
        program = _BUILT
    return Server(f"CoreDNS {COREDNS}", (program,), 3)


def _built_before() -> Path | None:
    folder, pattern = _OF_KUBELAB
    return next((path for path in (_BUILT, *folder.glob(pattern)) if os.access(path, os.X_OK)), None)


def _build(go: str) -> str:
    """What went wrong, "" if nothing did."""
    environment = {**os.environ, "GOBIN": str(_BUILT.parent), "CGO_ENABLED": "0"}
    module = f"github.com/coredns/coredns@v{COREDNS}"
    done = subprocess.run((go, "install", module), env=environment, capture_output=True, text=True, check=False)
    return (done.stderr.strip().splitlines() or ["go install failed"])[-1] if done.returncode else ""
