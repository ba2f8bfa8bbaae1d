"""`topodns explain`: prints why a client gets its answer, by a running server or from a Corefile's manifests."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from topodns.app.load import load_chosen
from topodns.cli.options import DEFAULT_PORT, stdin_text

TIMEOUT: Final = 5.0  # seconds


class AdminError(Exception):
    """No reply, a refusal, or a reply that is no explanation; the text gives the reason."""


def explain(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="topodns explain",
        description="Say why a client gets its answer: by a running server, or from a Corefile's manifests.",
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
    from topodns.app.explain.explanation import explanation_text
    from topodns.app.explain.question import Unexplained, parse_question
    from topodns.plugins.setup import FILE_ERRORS

    try:
        if flags.conf:
            from topodns.app.explain.explainer import explain_reply, manifest_clusters

            clusters = manifest_clusters(load_chosen(flags.conf, DEFAULT_PORT, stdin_text(flags.conf)))
            explained = explain_reply(clusters, parse_question(question)).as_dict()
        else:
            explained = _read_explanation(fetch(flags.server, "/explain", question), flags.server)
    except (AdminError, Unexplained, *FILE_ERRORS) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(json.dumps(explained, indent=2) if flags.json else explanation_text(explained))
    return 0


def _read_explanation(body: bytes, server: str) -> dict[str, object]:
    try:
        explained = json.loads(body)
    except ValueError:
        explained = None
    if not isinstance(explained, dict) or "question" not in explained:
        raise AdminError(f"{server} does not explain: is it the `ready` address of a topodns?")
    return explained


def fetch(server: str, path: str, arguments: Mapping[str, str]) -> bytes:
    """The body of a reply with status 200 of an admin endpoint of `server` (host:port). Raises AdminError."""
    import http.client  # here, as the command that serves imports this module, too
    import urllib.error
    import urllib.request
    from urllib.parse import urlencode

    url = f"http://{server}{path}?{urlencode(arguments)}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT) as reply:
            body: bytes = reply.read()
            return body
    except urllib.error.HTTPError as refused:
        raise AdminError(refused.read().decode("utf-8", "replace").strip() or str(refused)) from None
    except (OSError, ValueError, http.client.HTTPException) as failed:
        reason = failed.reason if isinstance(failed, urllib.error.URLError) else failed
        raise AdminError(
            f"no answer from {server}: {reason}; --server takes the HOST:PORT of a running server's `ready`"
        ) from None
