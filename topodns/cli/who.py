"""`topodns who`: prints the Node of an address and the evidence, by a running server or a Corefile's manifests."""

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from topodns.cli.admin_client import fetch_object
from topodns.cli.answer import add_answer_flags, print_answer

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.clusters import Cluster


def who(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="topodns who",
        description="Say on which node an address is, and why: by a running server, or from a Corefile's manifests.",
        allow_abbrev=False,
    )
    parser.add_argument("address", help="the source address of queries")
    add_answer_flags(parser)
    return _print_location(parser.parse_args(arguments))


def _print_location(flags: argparse.Namespace) -> int:
    from topodns.inspect.explain.who_text import who_text

    question = {"client": flags.address}

    def of_manifests(clusters: "list[Cluster]") -> dict[str, object]:
        from topodns.inspect.explain.client_location import who_reply

        return who_reply(clusters, question)

    of_server = partial(fetch_object, path="/who", arguments=question, key="clusters")
    return print_answer(flags, of_manifests, of_server, who_text)
