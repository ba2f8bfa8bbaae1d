"""`topodns who`: prints the Node of an address and the evidence, by a running server or a Corefile's manifests."""

import argparse
import sys
from collections.abc import Sequence

from topodns.app.load import load_chosen
from topodns.cli.admin_client import AdminError, fetch_object, object_text
from topodns.cli.options import DEFAULT_PORT, add_answer_flags, stdin_text


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
    from topodns.app.explain.location_text import who_text
    from topodns.app.explain.question import Unexplained
    from topodns.plugins.setup import FILE_ERRORS

    question = {"client": flags.address}
    try:
        if flags.conf:
            from topodns.app.explain.client_location import who_reply
            from topodns.app.explain.explainer import manifest_clusters

            found = who_reply(
                manifest_clusters(load_chosen(flags.conf, DEFAULT_PORT, stdin_text(flags.conf))), question
            )
        else:
            found = fetch_object(flags.server, "/who", question, "clusters")
        print(object_text(found, flags.json, who_text))
    except (AdminError, Unexplained, *FILE_ERRORS) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0
