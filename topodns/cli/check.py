"""`topodns check`: validates a Corefile and the files that it names, without serving or contacting API servers."""

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from random import Random

from topodns.app.generation import Assembly, Machine
from topodns.app.load import load_chosen
from topodns.cli.coredns_check import Migration, examine
from topodns.cli.options import add_corefile_flags, stdin_text
from topodns.corefile.files import load_corefile
from topodns.inspect.text import counted
from topodns.kube.client import check_kubeconfig
from topodns.kube.manifests.source import ManifestSource
from topodns.netlink.route import own_addresses
from topodns.plugins.bind import foreign_warnings
from topodns.plugins.block import Settings
from topodns.plugins.kubernetes.clusters import load_manifests

log = logging.getLogger(__name__)


def check(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="topodns check",
        description="Say whether a Corefile and its manifests can be served; API servers are not asked.",
        epilog="Exit status: 0 yes (with --from: CoreDNS's image can be swapped), 1 no, 2 wrong usage.",
        allow_abbrev=False,
    )
    add_corefile_flags(parser)
    parser.add_argument(
        "--from", dest="server", choices=["coredns"], help="say line by line what becomes of that server's Corefile"
    )
    flags = parser.parse_args(arguments)
    text = stdin_text(flags.conf)
    migration = _examined(flags, text) if flags.server is not None else None
    settings = _good(flags, text) if migration is None or migration.possible else None
    if migration is not None:
        print(migration.report(readable=settings is not None))
    if settings is None:
        return 1
    if migration is None:
        print(f"{settings.blocks[0].source}: good: {counted(len(settings.blocks), 'server block')}")
    return 0


def _good(flags: argparse.Namespace, text: str | None) -> Settings | None:
    """The settings, if they and all their files can be read as at a start; else None, with the errors on stderr."""
    from topodns.kube.client.contract import ApiError
    from topodns.logs import warnings_to
    from topodns.plugins.setup import FILE_ERRORS

    try:
        with warnings_to(sys.stderr):
            settings = load_chosen(flags.conf, flags.port, text, log.warning)
            for line in foreign_warnings(settings, own_addresses):
                log.warning("plugin/bind: %s", line)
            check_kubeconfigs(settings)
            unread = check_manifests(settings)
    except (ApiError, *FILE_ERRORS) as problem:
        print(problem, file=sys.stderr)
        return None
    if unread:
        print(f"{settings.blocks[0].source}: not good: {unread}", file=sys.stderr)
        return None
    return settings


def _examined(flags: argparse.Namespace, text: str | None) -> Migration:
    """The findings about CoreDNS's Corefile. Raises ConfigError if it cannot be read."""
    path = flags.conf or "Corefile"
    return examine(load_corefile(path) if text is None else text, path, flags.port, os.environ)


def check_kubeconfigs(settings: Settings) -> None:
    """Read all kubeconfigs as a start does, but run no `exec` plugins. Raises ApiError."""
    for block in settings.blocks:
        kubernetes = block.settings.get("kubernetes")
        api = kubernetes.api if kubernetes is not None else None
        if api is not None and api.kubeconfig:
            asyncio.run(check_kubeconfig(api))


def check_manifests(settings: Settings) -> str:
    """How many manifest files that the Corefile names, and objects in them, cannot be read; "" for none.

    Logs the bad ones, and problems of topology keys. Raises ConfigError, or for other files of the Corefile OSError or
    BadText.
    """
    machine = Machine("", "", frozenset(), Random(0))
    files = objects = 0
    clusters = Assembly(machine, lambda line: None).build(settings).clusters
    load_manifests(clusters)
    for cluster in clusters:
        if isinstance(cluster.source, ManifestSource):
            files += cluster.source.files_bad
            objects += cluster.source.objects_skipped
        for finding in cluster.findings():
            if finding is not None and finding.severity != "info":
                log.warning("plugin/topology: %s", finding)
    counts = ((files, "manifest file"), (objects, "object"))
    bad = " and ".join(counted(count, what) for count, what in counts if count)
    return f"{bad} cannot be read" if bad else ""
