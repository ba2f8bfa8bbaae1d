"""`topodns top` and `kubectl topodns top`: the queries of several servers as one table, or as one document in JSON."""

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, get_args

from topodns.cli.admin_client import AdminError, fetch_object, object_text
from topodns.cli.colour import show
from topodns.inspect.documents import Aspect
from topodns.inspect.text import integer, items, mapping, top_text

ROWS: Final = 20  # of the table, by default
_MOST_ROWS: Final = 200  # in the document of each server: inspect.top.MAX_ROWS


def add_top_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that choose what the rows are about, and how many there are."""
    parser.add_argument(
        "--by",
        choices=get_args(Aspect),
        default="client",
        metavar="WHAT",
        help="client, pod, namespace, node, name, or nxdomain: names that do not exist (client)",
    )
    parser.add_argument("--rows", type=_rows, default=ROWS, metavar="NUMBER", help=f"rows to print ({ROWS})")


def _rows(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_ROWS:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected 1 to {_MOST_ROWS}")
    return int(text)


def fetch_top(server: str, by: str) -> Mapping[str, object]:
    """The document of one server (host:port). Raises AdminError."""
    return fetch_object(server, "/top", {"by": by}, "rows")


def print_top(documents: Sequence[Mapping[str, object]], flags: argparse.Namespace) -> None:
    """Print the sums of these documents, of a server each, as the flags say. Raises AdminError."""
    try:
        document = _merged(documents, flags.by, flags.rows)
    except (KeyError, TypeError) as problem:
        raise AdminError(f"the server is of another version: its reply has no {problem}") from None
    show(object_text(document, flags.json, top_text))


def _merged(documents: Iterable[Mapping[str, object]], by: str, rows: int) -> Mapping[str, object]:
    """A document with the sums of these, at least one, and with so many rows."""
    sums = Counter[str]()
    found: dict[str, object] = {}
    totals = Counter[str]()
    for document in documents:
        found = {"version": document["version"], "by": by, "minutes": document["minutes"]}
        for part in ("queries", "sampled"):
            totals[part] += integer(document[part])
        for row in map(mapping, items(document["rows"])):
            sums[str(row["value"])] += integer(row["queries"])
    most = sorted(sums.items(), key=lambda row: (-row[1], row[0]))[:rows]
    listed = [{"value": value, "queries": queries} for value, queries in most]
    return {**found, **totals, "rows": listed, "others": totals["queries"] - sum(queries for _, queries in most)}
