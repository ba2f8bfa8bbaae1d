"""Command-line options that several commands share, and repeated loading of the Corefile."""

import argparse
import logging
import sys
from functools import partial
from typing import Final

from topodns.app.load import load_chosen
from topodns.corefile.arguments import MAX_PORT
from topodns.corefile.errors import ConfigError, shown
from topodns.files.text import decoded
from topodns.plugins.block import Settings

log = logging.getLogger(__name__)


DEFAULT_PORT: Final = 53
DEFAULT_SERVER: Final = "127.0.0.1:8181"  # the default address of `ready`


def stdin_text(path: str) -> str | None:
    """The Corefile on standard input with `-conf stdin`, else None. Raises ConfigError, as for a file."""
    try:
        return decoded(sys.stdin.buffer.read()) if path == "stdin" else None
    except ValueError as problem:
        raise ConfigError("stdin", 0, f"cannot be read: {problem}") from None


def add_corefile_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-conf", "--conf", default="", metavar="FILE", help="the Corefile, or `stdin` (./Corefile)")
    parser.add_argument(
        *("-dns.port", "--dns.port", "-p"),
        dest="port",
        type=_port,
        default=DEFAULT_PORT,
        metavar="N",
        help="port of server blocks without one (53)",
    )


def _port(text: str) -> int:
    # More digits than int() takes are no port either.
    if not text.isascii() or not text.isdecimal() or len(text) > 5 or int(text) > MAX_PORT:
        raise argparse.ArgumentTypeError(f"found {shown(text)}, expected a port from 0 to {MAX_PORT}")
    return int(text)


class LoadedCorefile:
    """Loads the Corefile again at each call, except for the text of standard input, which is kept. Raises ConfigError.

    Warnings about the Corefile are logged at the first call and after each change of its text; CoreDNS repeats them at
    each check of `reload`, every 30 seconds by default.
    """

    def __init__(self, path: str, port: int, stdin: str | None) -> None:
        self._load = partial(load_chosen, path, port, stdin)
        self._warned_of = ""  # the digest of that text

    def __call__(self) -> Settings:
        lines: list[str] = []
        settings = self._load(lines.append)
        if settings.digest != self._warned_of:
            self._warned_of = settings.digest
            for line in lines:
                log.warning("%s", line)
        return settings
