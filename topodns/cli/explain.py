"""`topodns explain`: prints why a client gets its answer, by a running server or from a Corefile's manifests."""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from topodns.cli.admin_client import fetch_object
from topodns.cli.answer import add_answer_flags, print_answer

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.clusters import Cluster


def explain(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="topodns explain",
        description="Say why a client gets its answer: by a running server, or from a Corefile's manifests.",
        allow_abbrev=False,
    )
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--client", default="", metavar="IP", help="the source address of the query")
    who.add_argument("--node", default="", metavar="NAME", help="the node that the client is on")
    parser.add_argument("name", help="the name of the query")
    parser.add_argument("type", nargs="?", default="A", help="the type of the query (A)")
    add_answer_flags(parser)
    flags = parser.parse_args(arguments)
    question = {"name": flags.name, "type": flags.type, "client": flags.client, "node": flags.node}
    return _print_explanation(flags, {key: value for key, value in question.items() if value})


def _print_explanation(flags: argparse.Namespace, question: Mapping[str, str]) -> int:
    from topodns.inspect.explain.explanation import explanation_text

    def of_manifests(clusters: "list[Cluster]") -> dict[str, object]:
        from topodns.inspect.explain.explainer import explain_reply
        from topodns.inspect.explain.question import parse_question

        return explain_reply(clusters, parse_question(question)).as_dict()

    of_server = partial(fetch_object, path="/explain", arguments=question, key="question")
    return print_answer(flags, of_manifests, of_server, explanation_text)
