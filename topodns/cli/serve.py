"""`topodns` with CoreDNS's flags: serves a Corefile, or runs a subcommand."""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from topodns.app.banner import plugins_text, print_banner, print_nothing, version_text
from topodns.app.signals import handle_signals_at_start
from topodns.cli.check import check
from topodns.cli.options import LoadedCorefile, add_corefile_flags, stdin_text
from topodns.corefile.errors import listed, nearest, shown


def run_command(arguments: Sequence[str]) -> int:
    """Serve, or run the subcommand in the first word. Returns the exit status. Raises ConfigError."""
    command = _COMMANDS.get(arguments[0]) if arguments else None
    return _serve(arguments) if command is None else command(arguments[1:])


def _serve(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="topodns",
        description="Serve a Corefile: cluster DNS that knows on which node a client runs.",
        epilog="\n".join(["commands, each with -h:", *(f"  {word:<11} {does}" for word, does in _WORDS.items())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_corefile_flags(parser)
    parser.add_argument("-pidfile", "--pidfile", default="", metavar="FILE", help="write the process id here")
    parser.add_argument("-quiet", "--quiet", action="store_true", help="print no banner at start")
    parser.add_argument("-plugins", "--plugins", action="store_true", help="list the directives and exit")
    parser.add_argument("-version", "--version", action="store_true", help="print the version and exit")
    if arguments and not arguments[0].startswith("-"):
        near = nearest(arguments[0], _WORDS)
        meant = f"did you mean '{near}'?" if near else f"expected {listed(_WORDS)}, or flags alone to serve"
        parser.error(f"unknown command {shown(arguments[0])}, {meant}")
    flags = parser.parse_args(arguments)
    if flags.version:
        print(version_text())
        return 0
    if flags.plugins:
        print(plugins_text())
        return 0
    return _run(flags)


def _run(flags: argparse.Namespace) -> int:
    handle_signals_at_start()
    # Imported here: `check` and `-version` need no sockets and no event loop.
    from topodns.app.hooks import Options
    from topodns.app.server import STOP_ERRORS, Announcement, run
    from topodns.inspect.routes import inspection
    from topodns.logs import start_logging

    start_logging(time.monotonic)
    announcement = Announcement(print_nothing if flags.quiet else print_banner, flags.pidfile)
    try:
        return run(
            LoadedCorefile(flags.conf, flags.port, stdin_text(flags.conf)),
            announcement,
            Options(more_routes=inspection),
        )
    except STOP_ERRORS as problem:
        print(problem, file=sys.stderr)
        return 1


def _version(arguments: Sequence[str]) -> int:
    return _serve(["-version", *arguments])


def _completion(arguments: Sequence[str]) -> int:
    """Print the script that completes the words of a command line in this shell."""
    parser = argparse.ArgumentParser(
        prog="topodns completion",
        description="Print a script for the shell: source <(topodns completion bash)",
        allow_abbrev=False,
    )
    parser.add_argument("shell", choices=["bash", "zsh"])
    flags = parser.parse_args(arguments)
    if flags.shell == "zsh":
        print(_ZSH)
    print(Path(__file__).with_name("completion.bash").read_text(encoding="utf-8"), end="")
    return 0


_ZSH: Final = "autoload -U +X compinit && compinit -i\nautoload -U +X bashcompinit && bashcompinit"
"""What zsh needs to run a completion of bash."""


def _inspect(command: str, arguments: Sequence[str]) -> int:
    from topodns.cli.inspect import COMMANDS  # here: they import more than a server that starts

    return COMMANDS[command](arguments)


def _locator(arguments: Sequence[str]) -> int:
    """Run `topodns locator` until a signal. Returns the exit status: 0 stopped, 1 failure. Wrong usage exits with 2."""
    # Here: a server without clusters loads no decoder of API objects.
    from topodns.kube.client.contract import ApiError
    from topodns.kube.client.credentials import package_needed
    from topodns.locator.locator_flags import parse_locator_flags

    flags = parse_locator_flags(arguments)
    handle_signals_at_start()
    try:
        with package_needed("topodns locator"):
            from topodns.locator.process import run as run_locator  # deferred: imports the kubernetes package
        return run_locator(flags)
    except ApiError as problem:
        print(problem, file=sys.stderr)
        return 1


_COMMANDS: Final[Mapping[str, Callable[[Sequence[str]], int]]] = {
    "check": check,
    "explain": partial(_inspect, "explain"),
    "who": partial(_inspect, "who"),
    "top": partial(_inspect, "top"),
    "audit": partial(_inspect, "audit"),
    "locator": _locator,
    "completion": _completion,
    "version": _version,
}
_WORDS: Final[Mapping[str, str]] = {
    "check": "verify a Corefile; list its errors",
    "explain": "say why a client gets its answer",
    "who": "say on which node an address is",
    "top": "list the clients or names with the most queries",
    "audit": "list the clients of Services with topology keys that get no endpoint",
    "locator": "write where Pods are, for servers that watch no Pods",
    "node-cache": "serve as a cache on a node",  # dispatched by `cli.main`
    "completion": "print the completion script of a shell",
    "help": "print the flags of a command",  # by `cli.main`, too
    "version": "print the version",
}
"""The words of commands, for `help`."""
