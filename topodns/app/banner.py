"""Shared by the serving commands: the banner and version text."""

import platform
from collections.abc import Mapping

from topodns import __version__
from topodns.corefile.zones import ListenAt
from topodns.plugins.block import Settings
from topodns.plugins.order import ORDER


def version_text() -> str:
    """The program's version and platform."""
    system = f"{platform.system().lower()}/{platform.machine()}"
    return f"topodns-{__version__}\n{system}, python {platform.python_version()}"


def plugins_text() -> str:
    """The directives, a line each, in the format of `coredns -plugins`."""
    return "\n".join(f"dns.{name}" for name in sorted(ORDER))


def print_banner(ports: Mapping[ListenAt, int], settings: Settings) -> None:
    """Print each server block's keys with port and bound host, if any, then the version, as CoreDNS does.

    Behind them the address of each topology page.
    """
    lines = []
    for block in settings.blocks:
        for key in block.keys:
            origin = ("tls://" if key.tls else "") + ".".join(key.origin) + "."
            for host in block.bound_hosts:
                at = f" on {host}" if host else ""
                lines.append(f"{origin}:{ports[key.at(host)]}{at}")
    print("\n".join([*lines, version_text(), *_pages(settings)]), flush=True)


def _pages(settings: Settings) -> list[str]:
    """A line for each address of the option `page` of `topology`."""
    found = [block.settings["topology"].page for block in settings.blocks if "topology" in block.settings]
    at = dict.fromkeys(page.listen for page in found if page is not None)
    hosts = [(f"[{each.host}]" if ":" in each.host else each.host or "127.0.0.1", each.port) for each in at]
    return [f"topology page http://{host}:{port}/topology" for host, port in hosts]


def print_nothing(ports: Mapping[ListenAt, int], settings: Settings) -> None:
    """The banner of `-quiet`: none."""
