"""What is measured: topodns, and beside it CoreDNS where it is at hand or can be built."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.programs import find_coredns

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


def coredns(say: Callable[[str], None]) -> Server | None:
    """None, with a line that says why, where it cannot be had."""
    found = find_coredns(say)
    return None if found is None else Server(found.title, (found.path,), 3)
