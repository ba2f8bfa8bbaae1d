"""Command-line options shared by `serve`, `check` and `explain`, and the loading of a Corefile by them."""

import argparse
import logging
import os
import sys
from functools import partial
from typing import Final

from topodns.app.load import Warn, load_settings, settings_from_text
from topodns.plugins.block import Settings

log = logging.getLogger(__name__)


DEFAULT_COREFILE: Final = ". {\n    whoami\n    log\n}\n"  # CoreDNS's default without a file
DEFAULT_PORT: Final = 53


def stdin_text(path: str) -> str | None:
    """The Corefile on standard input with `-conf stdin`, else None."""
    return sys.stdin.read() if path == "stdin" else None


def add_corefile_flags(parser: argparse.ArgumentParser) -> None:
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


def load(path: str, port: int, stdin: str | None, warn: Warn = str) -> Settings:
    """The settings of the Corefile `stdin`, a text, unless it is None, else of that in the file `path`.

    An empty path is ./Corefile, or if that does not exist, the built-in Corefile. Raises ConfigError.
    """
    if stdin is not None:
        return settings_from_text(stdin, "stdin", port, os.environ, warn)
    if not path and not os.path.exists("Corefile"):
        return settings_from_text(DEFAULT_COREFILE, "built-in Corefile", port, os.environ, warn)
    return load_settings(path or "Corefile", port, os.environ, warn)


class LoadedCorefile:
    """Loads the Corefile again at each call, except for the text of standard input, which is kept.

    Its warnings are logged only after its text has changed; CoreDNS repeats them at each check of `reload`, every 30
    seconds by default.
    """

    def __init__(self, path: str, port: int, stdin: str | None) -> None:
        self._load = partial(load, path, port, stdin)
        self._warned_of = ""  # the digest of that text

    def __call__(self) -> Settings:
        lines: list[str] = []
        settings = self._load(lines.append)
        if settings.digest != self._warned_of:
            self._warned_of = settings.digest
            for line in lines:
                log.warning("%s", line)
        return settings
