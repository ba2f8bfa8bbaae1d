"""`topodns explain`, `who`, `top` and `audit`: print what a running server says, or what is in manifests.

Loaded for these commands only: the one that serves does without.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from topodns.app.load import load_chosen
from topodns.cli.admin_client import (
    NO_ANSWER,
    AdminError,
    add_report_flags,
    fetch_audit,
    fetch_object,
    object_text,
    print_report,
)
from topodns.cli.colour import show
from topodns.cli.options import DEFAULT_PORT, DEFAULT_SERVER, stdin_text
from topodns.cli.top import add_top_flags, fetch_top, print_top
from topodns.corefile.errors import ConfigError
from topodns.inspect.audit import AuditSubject, document_steps, subjects
from topodns.inspect.documents import AuditDocument
from topodns.inspect.errors import Refused
from topodns.inspect.explain import explanation_steps, parse_question
from topodns.inspect.sources import check_whole, listed_state, manifest_clusters, manifest_state
from topodns.inspect.text import explanation_text, who_text
from topodns.inspect.what_if import parse_changes
from topodns.inspect.who import who_reply
from topodns.kube.client.contract import ApiError
from topodns.logs import warnings_to
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.setup import FILE_ERRORS
from topodns.plugins.topology.settings import TopologySettings
from topodns.time_slices import do_at_once

_STATUSES: Final = "Exit status: 0 answered, 2 not answered or wrong usage."


def explain(arguments: Sequence[str]) -> int:
    """Print why a client gets its answer. Returns the exit status, see `print_answer`."""
    parser = argparse.ArgumentParser(
        prog="topodns explain",
        description="Say why a client gets its answer: by a running server, or from a Corefile's manifests.",
        epilog=_STATUSES,
        allow_abbrev=False,
    )
    client = parser.add_mutually_exclusive_group(required=True)
    client.add_argument("--client", default="", metavar="IP", help="the source address of the query")
    client.add_argument("--node", default="", metavar="NAME", help="the node that the client is on")
    parser.add_argument("name", help="the name of the query")
    parser.add_argument("type", nargs="?", default="A", help="the type of the query (A)")
    add_answer_flags(parser)
    flags = parser.parse_args(arguments)
    given = {"name": flags.name, "type": flags.type, "client": flags.client, "node": flags.node}
    question = {key: value for key, value in given.items() if value}

    def of_manifests(clusters: list[Cluster]) -> Mapping[str, object]:
        return do_at_once(explanation_steps(clusters, parse_question(question))).as_dict()

    of_server = partial(fetch_object, path="/explain", arguments=question, key="question")
    return print_answer(flags, of_manifests, of_server, explanation_text)


def who(arguments: Sequence[str]) -> int:
    """Print the Node of an address and the evidence. Returns the exit status, see `print_answer`."""
    parser = argparse.ArgumentParser(
        prog="topodns who",
        description="Say on which node an address is, and why: by a running server, or from a Corefile's manifests.",
        epilog=_STATUSES,
        allow_abbrev=False,
    )
    parser.add_argument("address", help="the source address of queries")
    add_answer_flags(parser)
    flags = parser.parse_args(arguments)
    question = {"client": flags.address}
    of_server = partial(fetch_object, path="/who", arguments=question, key="clusters")
    return print_answer(flags, partial(who_reply, arguments=question), of_server, who_text)


def top(arguments: Sequence[str]) -> int:
    """Print what is queried most, and by which clients. Returns the exit status, see `print_answer`."""
    parser = argparse.ArgumentParser(
        prog="topodns top",
        description="List the clients or names with the most queries, by the samples of running servers.",
        epilog=_STATUSES,
        allow_abbrev=False,
    )
    add_top_flags(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--server",
        action="append",
        metavar="HOST:PORT",
        help=f"the `ready` address of a server ({DEFAULT_SERVER}); of several the sums",
    )
    flags = parser.parse_args(arguments)
    try:
        print_top([fetch_top(server, flags.by) for server in flags.server or [DEFAULT_SERVER]], flags)
    except AdminError as problem:
        print(problem, file=sys.stderr)
        return NO_ANSWER
    return 0


def audit(arguments: Sequence[str]) -> int:
    """Returns 0, 1 for findings of the severity of --fail-on or worse, or 2 if there is no audit."""
    parser = argparse.ArgumentParser(
        prog="topodns audit",
        description="Say which clients of Services with topology keys get no endpoint, or would after a change.",
        epilog="Exit status: 0 nothing of that severity found, 1 something found, 2 wrong usage, or no complete audit.",
        allow_abbrev=False,
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("-conf", "--conf", default="", metavar="FILE", help="audit the manifests of this Corefile")
    source.add_argument("--manifests", nargs="+", metavar="PATH", help="audit these files and directories")
    source.add_argument(
        "--kubeconfig", nargs="?", const="", metavar="FILE", help="audit the cluster of this kubeconfig"
    )
    source.add_argument("--server", metavar="HOST:PORT", help=f"else ask a server's `ready` address ({DEFAULT_SERVER})")
    parser.add_argument("--context", default="", metavar="NAME", help="of the kubeconfig; default: its current one")
    add_report_flags(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    flags = parser.parse_args(arguments)
    if flags.context and flags.kubeconfig is None:
        if flags.conf or flags.manifests or flags.server:
            parser.error("--context is of a kubeconfig: found another source beside it")
        flags.kubeconfig = ""
    return _print_audit(flags)


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
    of_manifests: Callable[[list[Cluster]], Mapping[str, object]],
    of_server: Callable[[str], Mapping[str, object]],
    text_of: Callable[[Mapping[str, object]], str],
) -> int:
    """Print the answer of the source that the flags name, as JSON or by `text_of`. Returns the exit status.

    Without an answer it is NO_ANSWER, and the reason is a line on standard error. `of_server` gets host:port.
    """
    try:
        found = of_manifests(_clusters(flags.conf)) if flags.conf else of_server(flags.server)
        text = object_text(found, flags.json, text_of)
    except (AdminError, ConfigError, Refused, *FILE_ERRORS) as problem:
        print(problem, file=sys.stderr)
        return NO_ANSWER
    show(text)
    return 0


def _print_audit(flags: argparse.Namespace) -> int:
    try:
        return print_report(_document(flags), flags)
    except BrokenPipeError:  # an OSError, but of the reader of stdout
        raise
    except (AdminError, ApiError, ConfigError, Refused, *FILE_ERRORS) as problem:
        print(problem, file=sys.stderr)
        return NO_ANSWER


def _document(flags: argparse.Namespace) -> Mapping[str, object]:
    """The document of `inspect.audit`, of the source that the flags name."""
    changes = flags.what_if or []
    parse_changes(changes)
    with warnings_to(sys.stderr):
        audited = _subjects(flags)
    if audited is None:
        return fetch_audit(flags.server or DEFAULT_SERVER, changes)
    document: AuditDocument = json.loads(do_at_once(document_steps(audited, changes)))
    return document


def _subjects(flags: argparse.Namespace) -> list[AuditSubject] | None:
    """The clusters to audit; None: those of a running server."""
    if flags.conf:
        clusters = _clusters(flags.conf)
        check_whole(cluster.source for cluster in clusters)
        return subjects(clusters)
    defaults = TopologySettings()
    if flags.manifests:
        state, skipped = manifest_state(flags.manifests, defaults)
        return [AuditSubject(state, defaults, skipped=skipped)]
    if flags.kubeconfig is not None:
        state, skipped = asyncio.run(listed_state(flags.kubeconfig or "", flags.context, defaults))
        return [AuditSubject(state, defaults, skipped=skipped)]
    return None


def _clusters(corefile: str) -> list[Cluster]:
    return manifest_clusters(load_chosen(corefile, DEFAULT_PORT, stdin_text(corefile)))


COMMANDS: Final[Mapping[str, Callable[[Sequence[str]], int]]] = {
    "explain": explain,
    "who": who,
    "top": top,
    "audit": audit,
}
