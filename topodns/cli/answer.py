"""What `topodns explain` and `topodns who` share: they print what a running server or a Corefile's manifests say."""

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from topodns.app.load import load_chosen
from topodns.cli.admin_client import AdminError, object_text
from topodns.cli.options import DEFAULT_PORT, DEFAULT_SERVER, stdin_text

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.clusters import Cluster


def add_answer_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of commands whose answer comes from a running server, or from the manifests of a Corefile."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-conf", "--conf", default="", metavar="FILE", help="use the manifests of this Corefile")
    parser.add_argument(
        "--server",
        default=DEFAULT_SERVER,
        metavar="HOST:PORT",
        help=f"else ask a running server at its `ready` address ({DEFAULT_SERVER})",
    )


def print_answer(
    flags: argparse.Namespace,
    of_manifests: Callable[[list["Cluster"]], Mapping[str, object]],
    of_server: Callable[[str], Mapping[str, object]],
    text_of: Callable[[Mapping[str, object]], str],
) -> int:
    """Print the answer of the source that the flags name, as JSON or by `text_of`. Returns the exit status.

    Without an answer it is 1, and the reason is a line on standard error. `of_server` gets host:port.
    """
    from topodns.inspect.explain.question import Unexplained
    from topodns.plugins.setup import FILE_ERRORS

    try:
        if flags.conf:
            from topodns.inspect.explain.explainer import manifest_clusters

            clusters = manifest_clusters(load_chosen(flags.conf, DEFAULT_PORT, stdin_text(flags.conf)))
            found = of_manifests(clusters)
        else:
            found = of_server(flags.server)
        print(object_text(found, flags.json, text_of))
    except (AdminError, Unexplained, *FILE_ERRORS) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0
