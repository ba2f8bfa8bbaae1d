"""What the commands that serve have in common: the banner, the version, and signals before there is a loop."""

import platform
import signal
import sys
from collections.abc import Mapping

from topodns import __version__
from topodns.config.directives import DIRECTIVES
from topodns.settings.server import Settings


def version_text() -> str:
    """The program's version, and what it runs on."""
    system = f"{platform.system().lower()}/{platform.machine()}"
    return f"topodns-{__version__}\n{system}, python {platform.python_version()}"


def plugins_text() -> str:
    """The directives, a line each, as CoreDNS lists its plugins."""
    return "\n".join(f"dns.{name}" for name in sorted(DIRECTIVES))


def print_banner(ports: Mapping[tuple[str, int], int], settings: Settings) -> None:
    """As CoreDNS: each key with its port, then the version."""
    lines = []
    for block in settings.blocks:
        for key in block.keys:
            origin = ".".join(key.origin) + "."
            for host in block.bind or ("",):
                at = f" on {host}" if host else ""
                lines.append(f"{origin}:{ports[(host, key.port)]}{at}")
    print("\n".join([*lines, version_text()]), flush=True)


def print_nothing(ports: Mapping[tuple[str, int], int], settings: Settings) -> None:
    """`-quiet`."""


def mind_signals() -> None:
    """Until the server minds them itself: a signal for a server must not kill one that is about to start."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    for ignored in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(ignored, signal.SIG_IGN)
