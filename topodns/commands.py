"""What the command line does itself: CoreDNS's flags to serve, and the subcommands check and explain."""

import argparse
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from topodns.config.errors import listed, shown
from topodns.config.files import load_corefile
from topodns.config.load import Warn, load_settings, settings_from_text
from topodns.config.migration import examine
from topodns.settings.server import Settings
from topodns.starting import mind_signals, plugins_text, print_banner, print_nothing, version_text

DEFAULT_COREFILE: Final = ". {\n    whoami\n    log\n}\n"  # CoreDNS's, where there is no file at all
DEFAULT_PORT: Final = 53

log = logging.getLogger(__name__)


def run_command(arguments: Sequence[str]) -> int:
    """Serve, or what the first word asks for; the exit status. Raises ConfigError."""
    command = _COMMANDS.get(arguments[0]) if arguments else None
    return _serve(arguments) if command is None else command(arguments[1:])


def _serve(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="topodns",
        description="Cluster DNS that knows where the asking pod runs. Also: topodns node-cache, check, explain.",
        allow_abbrev=False,
    )
    _add_corefile_flags(parser)
    parser.add_argument("-pidfile", "--pidfile", default="", metavar="FILE", help="write the process id here")
    parser.add_argument("-quiet", "--quiet", action="store_true", help="print nothing at start")
    parser.add_argument("-plugins", "--plugins", action="store_true", help="list the directives and exit")
    parser.add_argument("-version", "--version", action="store_true", help="print the version and exit")
    if arguments and not arguments[0].startswith("-"):
        parser.error(f"unknown command {shown(arguments[0])}, expected {listed(_WORDS)}, or flags alone to serve")
    flags = parser.parse_args(arguments)
    if flags.version:
        print(version_text())
        return 0
    if flags.plugins:
        print(plugins_text())
        return 0
    return _run(flags)


def _run(flags: argparse.Namespace) -> int:
    mind_signals()
    # Imported here: `check` and `-version` need no sockets and no loop.
    from topodns.app import STOP_ERRORS, Announcement, run
    from topodns.edge.log_lines import start_logging

    start_logging(sys.stdout, time.monotonic)
    announcement = Announcement(print_nothing if flags.quiet else print_banner, flags.pidfile)
    try:
        return run(_Loading(flags.conf, flags.port, _stdin_text(flags.conf)), announcement)
    except STOP_ERRORS as problem:
        print(problem, file=sys.stderr)
        return 1


def _check(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="topodns check",
        description="Say whether a Corefile and its manifests can be served; API servers are not asked.",
        epilog="Exit status: 0 yes (with --from: CoreDNS's image can be swapped), 1 no, 2 wrong usage.",
        allow_abbrev=False,
    )
    _add_corefile_flags(parser)
    parser.add_argument(
        "--from", dest="server", choices=["coredns"], help="say line by line what becomes of that server's Corefile"
    )
    flags = parser.parse_args(arguments)
    text = _stdin_text(flags.conf)
    if flags.server is not None and not _examine(flags, text):
        return 1
    settings = _good(flags, text)
    if settings is None:
        return 1
    if flags.server is None:
        blocks = "1 server block" if len(settings.blocks) == 1 else f"{len(settings.blocks)} server blocks"
        print(f"{settings.blocks[0].source}: good: {blocks}")
    return 0


def _good(flags: argparse.Namespace, text: str | None) -> Settings | None:
    """The settings, if they and all files behind them can be read as a start does; else it is said what cannot."""
    from topodns.edge.kube_api import ApiError
    from topodns.edge.log_lines import warnings_to
    from topodns.manifest_check import check_kubeconfigs, check_manifests
    from topodns.workings import FILE_ERRORS

    try:
        with warnings_to(sys.stderr):
            settings = _load(flags.conf, flags.port, text, log.warning)
            check_kubeconfigs(settings)
            whole = check_manifests(settings)
    except (ApiError, *FILE_ERRORS) as problem:
        print(problem, file=sys.stderr)
        return None
    return settings if whole else None


def _examine(flags: argparse.Namespace, text: str | None) -> bool:
    """Print what becomes of CoreDNS's Corefile, and say whether its directives are all there."""
    path = flags.conf or "Corefile"
    migration = examine(load_corefile(path) if text is None else text, path, flags.port, os.environ)
    print(migration)
    return migration.possible


def _explain(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="topodns explain",
        description="Say why a client is told what it is told: by a running server, or from a Corefile's manifests.",
        allow_abbrev=False,
    )
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--client", default="", metavar="IP", help="the address that asks")
    who.add_argument("--node", default="", metavar="NAME", help="the node that the client is on")
    parser.add_argument("name", help="the name asked for")
    parser.add_argument("type", nargs="?", default="A", help="the type asked for (A)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "-conf", "--conf", default="", metavar="FILE", help="load this Corefile's manifests to find out"
    )
    parser.add_argument(
        "--server", default="127.0.0.1:8181", metavar="HOST:PORT", help="else ask the `ready` address of this server"
    )
    flags = parser.parse_args(arguments)
    question = {"name": flags.name, "type": flags.type, "client": flags.client, "node": flags.node}
    return _print_explanation(flags, {key: value for key, value in question.items() if value})


def _print_explanation(flags: argparse.Namespace, question: Mapping[str, str]) -> int:
    from topodns.edge.admin_client import AdminError, fetch
    from topodns.explain import Unexplained, explain_offline, explanation_text
    from topodns.workings import FILE_ERRORS

    try:
        if flags.conf:
            settings = _load(flags.conf, DEFAULT_PORT, _stdin_text(flags.conf))
            explained = explain_offline(settings, question).as_dict()
        else:
            explained = _read_explanation(fetch(flags.server, "/explain", question), flags.server)
    except (AdminError, Unexplained, *FILE_ERRORS) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(json.dumps(explained, indent=2) if flags.json else explanation_text(explained))
    return 0


def _read_explanation(body: bytes, server: str) -> dict[str, object]:
    from topodns.edge.admin_client import AdminError

    try:
        explained = json.loads(body)
    except ValueError:
        explained = None
    if not isinstance(explained, dict) or "question" not in explained:
        raise AdminError(f"{server} does not explain: is it the `ready` address of a topodns?")
    return explained


def _stdin_text(path: str) -> str | None:
    """The Corefile on standard input, where `-conf stdin` says that it is there."""
    return sys.stdin.read() if path == "stdin" else None


def _add_corefile_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-conf", "--conf", default="", metavar="FILE", help="the Corefile, or `stdin` (Corefile)")
    parser.add_argument(
        *("-dns.port", "--dns.port", "-p"),
        dest="port",
        type=_port,
        default=DEFAULT_PORT,
        metavar="N",
        help="port of keys without one (53)",
    )


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port")
    return port


def _load(path: str, port: int, stdin: str | None, warn: Warn = str) -> Settings:
    """The settings of a Corefile; without a path that of the working directory, or the built-in one."""
    if stdin is not None:
        return settings_from_text(stdin, "stdin", port, os.environ, warn)
    if not path and not os.path.exists("Corefile"):
        return settings_from_text(DEFAULT_COREFILE, "built-in Corefile", port, os.environ, warn)
    return load_settings(path or "Corefile", port, os.environ, warn)


class _Loading:
    """Loads the Corefile anew with each call. What there is to warn of is logged once for each text of it.

    CoreDNS says it again whenever `reload` looks, which is every half a minute.
    """

    def __init__(self, path: str, port: int, stdin: str | None) -> None:
        self._load = partial(_load, path, port, stdin)
        self._warned_of = ""  # a digest

    def __call__(self) -> Settings:
        lines: list[str] = []
        settings = self._load(lines.append)
        if settings.digest != self._warned_of:
            self._warned_of = settings.digest
            for line in lines:
                log.warning("%s", line)
        return settings


_COMMANDS: Final[Mapping[str, Callable[[Sequence[str]], int]]] = {"check": _check, "explain": _explain}
_WORDS: Final = (*_COMMANDS, "node-cache")  # which `cli` sees to
