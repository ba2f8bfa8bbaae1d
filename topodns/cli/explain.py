"""`topodns explain`: prints why a client gets its answer, by a running server or from a Corefile's manifests."""

import argparse
import sys
from collections.abc import Mapping, Sequence

from topodns.app.load import load_chosen
from topodns.cli.admin_client import AdminError, fetch_object, object_text
from topodns.cli.options import DEFAULT_PORT, add_answer_flags, stdin_text


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
    add_answer_flags(parser)
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
            explained = fetch_object(flags.server, "/explain", question, "question")
        print(object_text(explained, flags.json, explanation_text))
    except (AdminError, Unexplained, *FILE_ERRORS) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0
