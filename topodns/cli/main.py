"""The entry points of the package, `topodns` and `node-cache`, and their exit statuses."""

import os
import signal
import sys
from collections.abc import Callable, Sequence

from topodns.app.signals import block_signals
from topodns.corefile.errors import ConfigError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status: 0 success, 1 a finding or a failed start, 2 no answer or SIGINT.

    A server that runs stops at SIGINT with 0 (`app.signals`). Wrong usage raises SystemExit with status 2.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    return run_to_status(lambda: _run_named(arguments))


def run_to_status(command: Callable[[], int]) -> int:
    """Run a command, and flush its output. Returns the exit status.

    That is the command's own; 1 after a ConfigError, which is printed to standard error; 2 after SIGINT; 141, as of a
    program that SIGPIPE ends, if the reader of standard output has closed it.
    """
    try:
        status = command()
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of stdout, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes stdout at exit
        return 128 + signal.SIGPIPE
    except ConfigError as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 2


def node_cache() -> int:
    """The command `node-cache`, the same as `topodns node-cache`."""
    return main(["node-cache", *sys.argv[1:]])


def _run_named(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "-h"]
    # Imported here: a node-cache stays small without the modules of the other commands.
    if arguments[:1] == ["node-cache"]:
        block_signals()  # first: the next import takes a quarter of a second
        from topodns.nodecache.command import main as serve_node

        return serve_node(arguments[1:])
    from topodns.cli.serve import run_command

    return run_command(arguments)
