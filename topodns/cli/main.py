"""The command line: hands over to `node_cache` or to `commands`, and ends as a shell expects."""

import os
import sys
from collections.abc import Sequence

from topodns.config.errors import ConfigError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status: 0 well, 1 a fault in what was given, 2 wrong usage."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # whoever reads what is printed, such as `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes at its end
        return 1
    except ConfigError as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 2


def _run(arguments: Sequence[str]) -> int:
    # Imported here: a node's cache is small, and needs nothing of the other commands.
    if arguments[:1] == ["node-cache"]:
        from topodns.node_cache import main as node_cache

        return node_cache(arguments[1:])
    from topodns.commands import run_command

    return run_command(arguments)
