"""The servers that are measured: topodns, and CoreDNS if it is built or Go can build it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.programs import TOPODNS as PROGRAM
from bench.programs import Command, find_coredns

# Sockets are opened after a second, so that clients query during most of the first sync. A cluster without Pods has
# `pods disabled`, and topodns locates clients without Pods.
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
    """A program with CoreDNS's flags and Corefile. `own`: lines of its Corefile that the other server does not have.

    `kinds`: number of kinds of objects that it lists, without Pods.
    """

    title: str
    program: Command
    kinds: int
    own: str = ""

    def corefile(self, url: str, with_pods: bool) -> str:
        return _COREFILE.format(url=url, pods="verified" if with_pods else "disabled", own=self.own)


_TOPOLOGY: Final = "topology {\n        locate nodes podcidr slices\n    }"

TOPODNS: Final = Server("topodns", PROGRAM, 4, _TOPOLOGY)


def coredns(say: Callable[[str], None]) -> Server | None:
    """CoreDNS; None, and a line to `say` with the reason, if it is neither built nor can be."""
    found = find_coredns(say)
    return None if found is None else Server(found.title, (found.path,), 3)
