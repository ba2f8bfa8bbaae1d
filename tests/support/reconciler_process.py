"""The host network of a node cache as a process: `python -m tests.support.reconciler_process FIREWALL`.

With iptables it runs under a watchdog, as the program would. The redirect is on until SIGTERM. With SILENT after the
firewall, the watchdog's child is a program that sends no keepalive.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.support.namespaced_node import Setup
from tests.support.reconciler_on_node import kept, network, renewed
from tests.support.server_process import ROOT
from topodns.hostnet.rules import Firewall
from topodns.hostnet.watchdog_launch import heartbeat_fd, run_under_watchdog

MODULE = "tests.support.reconciler_process"
SILENT = "silent"


@contextmanager
def keeping(scene: Setup, firewall: Firewall, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """The process on the node; at the end it is killed with all that it started."""
    with scene.node.entered():
        process = subprocess.Popen([sys.executable, "-m", MODULE, firewall, *more], cwd=ROOT, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


async def _keep(firewall: Firewall) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with kept(network(firewall), heartbeat=heartbeat_fd()) as reconciler, renewed(reconciler):
        await stop.wait()


def main(firewall: Firewall, *more: str) -> None:
    if SILENT in more:
        run_under_watchdog(network(firewall), ("/bin/sleep", "60"))
    if firewall is Firewall.IPTABLES and heartbeat_fd() is None:
        run_under_watchdog(network(firewall), (sys.executable, "-m", MODULE, firewall))
    asyncio.run(_keep(firewall))


if __name__ == "__main__":
    main(Firewall(sys.argv[1]), *sys.argv[2:])
