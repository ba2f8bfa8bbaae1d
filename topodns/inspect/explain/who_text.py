"""The replies of /who as text for people. Without the modules of clusters: the kubectl plugin imports this one."""

from collections.abc import Iterator, Mapping
from typing import Final

from topodns.inspect.explain.explanation import items, mapping, method_text

_WIDTH: Final = 9  # characters of the words on the left


def who_text(reply: Mapping[str, object]) -> str:
    """The object of `client_location.who_reply` as text for people.

    Raises KeyError or TypeError for any other object.
    """
    lines = [_line("address", str(reply["address"]))]
    for cluster in map(mapping, items(reply["clusters"])):
        lines += _cluster_lines(cluster)
    return "\n".join(lines)


def pod_text(found: Mapping[str, object]) -> str:
    """As `who_text`, of all addresses of a Pod: `pod` (NAMESPACE/NAME), its `node` by the API server, `addresses`."""
    lines = [_line("pod", f"{found['pod']} on {found['node'] or 'no node'}, by the API server")]
    for reply in map(mapping, items(found["addresses"])):
        lines.append(who_text(reply))
        nodes = {str(cluster["node"]) for cluster in map(mapping, items(reply["clusters"])) if cluster["node"]}
        if nodes - {str(found["node"])}:
            lines.append(_line("but", f"the API server says {found['node']}, this server {', '.join(sorted(nodes))}"))
    return "\n".join(lines)


def _cluster_lines(cluster: Mapping[str, object]) -> Iterator[str]:
    view = f", view {cluster['view']}" if cluster["view"] else ""
    yield _line("cluster", ", ".join(map(str, items(cluster["origins"]))) + view)
    yield _line("node", f"{cluster['node']} ({method_text(cluster['method'])})" if cluster["node"] else "unknown")
    if cluster["zone"]:
        yield _line("zone", str(cluster["zone"]))
    yield from _lines("labels", (f"{key} = {value}" for key, value in mapping(cluster["labels"]).items()))
    yield from _lines("lacks", map(str, items(cluster["lacking"])))
    yield _line("because", str(cluster["because"]))
    yield from _lines("methods", map(_method_text, map(mapping, items(cluster["methods"]))))
    yield from _lines("but", map(str, items(cluster["contradictions"])))
    if cluster["hint"]:
        yield _line("hint", str(cluster["hint"]))


def _method_text(evidence: Mapping[str, object]) -> str:
    unused = "" if evidence["used"] else " (not in `locate`)"
    return f"{evidence['method']}{unused}: {evidence['node'] or 'unknown'}, {evidence['because']}"


def _lines(word: str, texts: Iterator[str]) -> Iterator[str]:
    """One line for each text, the word in front of the first."""
    for at, text in enumerate(texts):
        yield _line("" if at else word, text)


def _line(word: str, text: str) -> str:
    return f"{word:{_WIDTH}}{text}"
