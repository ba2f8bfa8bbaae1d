"""`topodns check`: validates a Corefile and the files that it names, without serving or contacting API servers."""

import argparse
import asyncio
import io
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from topodns.app.generation import Assembly, Machine
from topodns.app.load import load_chosen
from topodns.cli.colour import show
from topodns.cli.coredns_check import Migration, examine
from topodns.cli.options import add_corefile_flags, stdin_text
from topodns.cluster.findings.finding import Finding, Severity
from topodns.corefile.errors import ConfigError
from topodns.corefile.files import load_corefile
from topodns.inspect.text import counted
from topodns.kube.client import check_kubeconfig
from topodns.kube.client.contract import ApiError
from topodns.kube.manifests.source import ManifestSource
from topodns.logs import printable, warnings_to
from topodns.netlink.route import own_addresses
from topodns.plugins.bind import foreign_warnings
from topodns.plugins.block import Settings
from topodns.plugins.kubernetes.clusters import Cluster, load_manifests
from topodns.plugins.setup import FILE_ERRORS

log = logging.getLogger(__name__)


def check(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="topodns check",
        description="Say whether a Corefile and its manifests can be served, and their topology keys and annotations "
        "are valid; API servers are not asked.",
        epilog="Exit status: 0 yes (with --from: CoreDNS's image can be swapped), 1 no, 2 wrong usage.",
        allow_abbrev=False,
    )
    add_corefile_flags(parser)
    parser.add_argument(
        "--from", dest="server", choices=["coredns"], help="say what becomes of the lines of that server's Corefile"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    flags = parser.parse_args(arguments)
    found, migration = _Found(flags.conf or "Corefile"), None
    with warnings_to(found.log), found.noted():
        text = stdin_text(flags.conf)
        migration = _examined(flags, text) if flags.server is not None else None
        if migration is None or migration.possible:
            _read(flags, text, found)
    good = not found.errors and (migration is None or migration.possible)
    if flags.json:
        print(json.dumps(_document(found, migration, good), indent=2))
    else:
        for line in [*found.warnings, *map(str, found.errors)]:
            show(line, sys.stderr)
        if migration is not None:
            show(migration.report(readable=good))
        elif good:
            warned = f", {counted(len(found.warnings), 'warning')}" if found.warnings else ""
            show(f"{found.source}: good: {counted(found.blocks, 'server block')}{warned}")
    return int(not good)


@dataclass(slots=True)
class _Found:
    """The result for the Corefile `source`. Warnings are written to `log`, those of a server with `[WARNING]`."""

    source: str
    log: io.StringIO = field(default_factory=io.StringIO)
    blocks: int = 0
    errors: list[ConfigError] = field(default_factory=list)

    @property
    def warnings(self) -> list[str]:
        return self.log.getvalue().splitlines()

    def warn(self, line: str) -> None:
        """Note a line that is not in the log of a server."""
        print(printable(line), file=self.log)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Within the context, errors of files that a start reads are noted, and end the context."""
        try:
            yield
        except ConfigError as problem:
            self.errors += problem.each
        except (ApiError, *FILE_ERRORS) as problem:
            self.errors.append(FileProblem(str(problem)))


class FileProblem(ConfigError):
    """The error of a file that the Corefile names, or of an object in it; `problem` is the whole text."""

    def __init__(self, problem: str) -> None:
        super().__init__("", 0, problem)

    def __str__(self) -> str:
        return self.problem


def _document(found: _Found, migration: Migration | None, good: bool) -> Mapping[str, object]:
    document = {
        "corefile": found.source,
        "good": good,
        "server_blocks": found.blocks,
        "errors": [{"file": each.file, "line": each.line, "problem": each.problem} for each in found.errors],
        "warnings": [line.removeprefix("[WARNING] ") for line in found.warnings],
    }
    if migration is None:
        return document
    groups = migration.remarks().items()
    return document | {"remarks": {heading: [remark.as_dict() for remark in said] for heading, said in groups}}


def _read(flags: argparse.Namespace, text: str | None, found: _Found) -> None:
    """Read the Corefile and all its files as at a start; warnings are logged. Raises ConfigError of the Corefile."""
    settings = load_chosen(flags.conf, flags.port, text, log.warning)
    found.source, found.blocks = settings.blocks[0].source, len(settings.blocks)
    for line in foreign_warnings(settings, own_addresses):
        log.warning("plugin/bind: %s", line)
    check_kubeconfigs(settings, found)
    with found.noted():
        unread, findings = check_manifests(settings)
        found.errors += (FileProblem(line) for severity, line in findings if severity == "error")
        for severity, line in findings:
            if severity == "warning":
                found.warn(line)
        if unread:
            found.errors.append(FileProblem(f"{found.source}: not good: {unread}"))


def _examined(flags: argparse.Namespace, text: str | None) -> Migration:
    """The findings about CoreDNS's Corefile. Raises ConfigError if it cannot be read."""
    path = flags.conf or "Corefile"
    return examine(load_corefile(path) if text is None else text, path, flags.port, os.environ)


def check_kubeconfigs(settings: Settings, found: _Found) -> None:
    """Read all kubeconfigs as a start does, but run no `exec` plugins."""
    for block in settings.blocks:
        kubernetes = block.settings.get("kubernetes")
        api = kubernetes.api if kubernetes is not None else None
        if api is not None and api.kubeconfig:
            with found.noted():
                asyncio.run(check_kubeconfig(api))


def check_manifests(settings: Settings) -> tuple[str, list[tuple[Severity, str]]]:
    """How many manifest files that the Corefile names, and objects in them, cannot be read, "" for none; and the
    findings about topology keys and annotations, as in an audit, a line each.

    Logs the bad files and objects. Raises ConfigError, or for other files of the Corefile OSError or BadText.
    """
    machine = Machine("", "", frozenset(), Random(0))
    files = objects = 0
    findings: list[tuple[Severity, str]] = []
    clusters = Assembly(machine, lambda line: None).build(settings).clusters
    load_manifests(clusters)
    for cluster in clusters:
        if isinstance(cluster.source, ManifestSource):
            files += cluster.source.files_bad
            objects += cluster.source.objects_skipped
        findings += ((each.severity, _line(cluster, each)) for each in cluster.findings() if each is not None)
    counts = ((files, "manifest file"), (objects, "object"))
    bad = " and ".join(counted(count, what) for count, what in counts if count)
    return f"{bad} cannot be read" if bad else "", findings


def _line(cluster: Cluster, finding: Finding) -> str:
    """A finding behind its place, as the errors of a Corefile, and its severity."""
    place, text = cluster.place_of(finding), str(finding)
    for default in cluster.topology.defaults if cluster.topology is not None and finding.kind == "default" else ():
        if text.startswith(f"{default.place}: "):
            place = f"{default.place}: "
    return f"{place}{finding.severity}: {text.removeprefix(place)}"
