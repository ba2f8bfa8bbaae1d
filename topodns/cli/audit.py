"""`topodns audit`: prints which clients of Services with topology keys get no endpoint, or soon may, and what-ifs."""

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from topodns.app.load import load_chosen
from topodns.cli.admin_client import AdminError, fetch_object, object_text
from topodns.cli.options import DEFAULT_PORT, DEFAULT_SERVER, stdin_text
from topodns.corefile.errors import listed
from topodns.inspect.audit.endpoint import SEPARATOR

if TYPE_CHECKING:
    from topodns.inspect.audit.document import AuditSubject

log = logging.getLogger(__name__)

TIMEOUT: Final = 60.0  # seconds for a server's reply: the audit of a large cluster takes seconds

FAIL_ON: Final[Mapping[str, tuple[str, ...]]] = {
    "error": ("error",),
    "warning": ("error", "warning"),
    "info": ("error", "warning", "info"),
    "never": (),
}
NO_AUDIT: Final = 2  # exit status


def audit(arguments: Sequence[str]) -> int:
    """Returns 0, 1 for findings of the severity of --fail-on or worse, or 2 if there is no audit."""
    parser = argparse.ArgumentParser(
        prog="topodns audit",
        description="Say which clients of Services with topology keys get no endpoint, or would after a change.",
        epilog="Exit status: 0 nothing of that severity found, 1 something found, 2 no audit or wrong usage.",
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


def add_report_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that choose the contents of an audit and its exit status."""
    parser.add_argument(
        "--what-if",
        action="append",
        metavar="CHANGE",
        help="print what would change; node=NAME:down, zone=NAME:down, scale=NS/NAME:-N, keys=NS/NAME:KEY,KEY",
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default="error",
        metavar="SEVERITY",
        help=f"exit with 1 from this severity on: {listed(FAIL_ON)} (error)",
    )


def _print_audit(flags: argparse.Namespace) -> int:
    from topodns.corefile.errors import ConfigError
    from topodns.inspect.audit.states import NoSubject
    from topodns.inspect.explain.question import Unexplained
    from topodns.inspect.what_if import BadWhatIf
    from topodns.kube.client.contract import ApiError
    from topodns.plugins.setup import FILE_ERRORS

    try:
        return print_report(_document(flags), flags.json, flags.fail_on)
    except BrokenPipeError:  # an OSError, but of the reader of stdout
        raise
    except (AdminError, ApiError, BadWhatIf, ConfigError, NoSubject, Unexplained, *FILE_ERRORS) as problem:
        print(problem, file=sys.stderr)
        return NO_AUDIT


def print_report(document: Mapping[str, object], as_json: bool, fail_on: str) -> int:
    """Print the document of an audit as JSON or as text. Returns the exit status for this --fail-on.

    Raises NoSubject if it has no cluster, and AdminError if it cannot be read.
    """
    from topodns.inspect.audit.states import NoSubject
    from topodns.inspect.audit.text import audit_text
    from topodns.inspect.explain.explanation import items, mapping

    try:
        clusters = list(map(mapping, items(document["clusters"])))
        waiting = any(cluster["waiting"] for cluster in clusters)
        # With a what-if, the findings that count are those that there would be.
        judged = (mapping(cluster["what_if"]) if cluster["what_if"] is not None else cluster for cluster in clusters)
        found = any(mapping(each["counts"])[severity] for each in judged for severity in FAIL_ON[fail_on])
    except (KeyError, TypeError) as problem:
        raise AdminError(f"the server is of another version: its reply has no {problem}") from None
    if not clusters:
        raise NoSubject("nothing to audit: no server block has the directive `topology`")
    print(object_text(document, as_json, audit_text))
    return NO_AUDIT if waiting else int(found)


def _document(flags: argparse.Namespace) -> Mapping[str, object]:
    """The document of `inspect.audit.document`, of the source that the flags name."""
    from topodns.inspect.audit.document import document_steps
    from topodns.inspect.what_if import parse_changes
    from topodns.logs import warnings_to
    from topodns.time_slices import do_at_once

    changes = flags.what_if or []
    parse_changes(changes)
    with warnings_to(sys.stderr):
        subjects = _subjects(flags)
    if subjects is None:
        return fetch_audit(flags.server or DEFAULT_SERVER, changes)
    document: dict[str, object] = json.loads(do_at_once(document_steps(subjects, changes)))
    return document


def fetch_audit(server: str, changes: Sequence[str]) -> dict[str, object]:
    """The document of an audit by a running server (host:port), with these changes. Raises AdminError."""
    question = {"what-if": SEPARATOR.join(changes)} if changes else {}
    return fetch_object(server, "/audit", question, "clusters", TIMEOUT)


def _subjects(flags: argparse.Namespace) -> "list[AuditSubject] | None":
    """The clusters to audit; None: those of a running server."""
    from topodns.inspect.audit.document import AuditSubject, rules_of, subjects
    from topodns.inspect.audit.states import check_whole, listed_state, manifest_state
    from topodns.inspect.explain.explainer import manifest_clusters
    from topodns.plugins.topology.settings import TopologySettings

    if flags.conf:
        clusters = manifest_clusters(load_chosen(flags.conf, DEFAULT_PORT, stdin_text(flags.conf)))
        check_whole(cluster.source for cluster in clusters)
        return subjects(clusters)
    defaults = TopologySettings()
    if flags.manifests:
        return [AuditSubject(manifest_state(flags.manifests, defaults), rules_of(defaults))]
    if flags.kubeconfig is not None:
        state = asyncio.run(listed_state(flags.kubeconfig or "", flags.context, defaults, log.warning))
        return [AuditSubject(state, rules_of(defaults))]
    return None
