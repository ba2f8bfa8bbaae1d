"""The JSON documents of explain, who, top and audit as text for people, and the words that their sentences share.

Without the modules of clusters: the kubectl plugin imports this one. A document may be of a server of another version:
each text raises KeyError or TypeError for one that it cannot read.
"""

import sys
from bisect import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Final

from topodns.logs import printable

WIDTH: Final = 120  # columns of an audit
_UNLIMITED: Final = sys.maxsize
_NEIGHBOURS: Final = 30  # known names before and behind an unknown one that are compared with it
_COMPARED: Final = 64  # characters of a name: difflib is quadratic
NAMED: Final = 5  # names in one sentence
ENDPOINTS: Final = 12  # in the text of an explanation

_METHODS: Final = {
    "nodes": "an address of the node: a process there, or a masqueraded Pod",
    "podcidr": "by its pod CIDR",
    "podcidr-unverified": "by its pod CIDR, unverified",
    "slices": "by an EndpointSlice",
    "pods": "by a Pod",
    "nodelocator": "by its NodeLocator",
    "podlocator": "by a PodLocator",
    "own": "this server's own",
    "given": "as given",
}
"""How a client was located, for people; JSON has the words on the left."""

_LABEL: Final = 9  # characters of the words on the left
_COLUMNS: Final = (("SERVICE", -32), ("KEYS", -46), ("READY", 6), ("NODES COVERED", 14), ("ZONES", 9), ("SKEW", 6))
_SEVERITIES: Final = ("error", "warning", "info")


def counted(count: object, noun: str) -> str:
    """`1 Node`, `2 Nodes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def named(names: Iterable[str], count: int | None = None) -> str:
    """The first names as text: `a, b and 3 more`. `count`: of all names, if `names` are only the first of them."""
    known = list(names)
    shown = known[:NAMED]
    more = (len(known) if count is None else count) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def offer(name: str, known: Collection[str]) -> str:
    """`, did you mean ...?` with the known name most similar to an unknown one; "" without one.

    Only names that are near in alphabetical order are compared: a cluster may have 5,000 Nodes.
    """
    from difflib import get_close_matches  # here: only errors need it

    ordered = sorted(known)
    at = bisect(ordered, name)
    near = get_close_matches(name[:_COMPARED], ordered[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS], n=1)
    return f", did you mean {near[0]!r}?" if near else ""


def explanation_text(explained: Mapping[str, object]) -> str:
    """The object of `explain.Explanation.as_dict` as text."""
    client, question, policy = (mapping(explained[part]) for part in ("client", "question", "policy"))
    node = _node_text(client["node"], client["method"])
    lines = [
        _line("client", f"{client['address'] or 'any'} on {f'node {node}' if node else 'an unknown node'}"),
        _line("name", f"{question['name']} {question['type']}"),
    ]
    if policy["keys"] or policy["problem"] or policy.get("guards"):
        lines.append(_line("policy", _policy_text(policy)))
    for attempt in map(mapping, items(explained["tried"])):
        wins = "  <- wins" if attempt["key"] == explained["winner"] else ""
        value = f" = {attempt['value']}" if attempt["value"] is not None else ""
        absent = f", as {attempt['because']}" if attempt["because"] else ""
        guard = f", {attempt['guard']}" if attempt.get("guard") else ""
        lines.append(_line("tried", f"{attempt['key']}{value}: {attempt['matches']} matching{absent}{guard}{wins}"))
    if explained["reason"]:
        lines.append(_line("because", str(explained["reason"])))
    if explained.get("bound"):
        bound = mapping(explained["bound"])
        lines.append(_line("bound", f"{bound['answered']} of {bound['of']} endpoints by max-endpoints {bound['most']}"))
    if explained["hint"]:
        lines.append(_line("hint", str(explained["hint"])))
    lines += _lines("finding", map(str, items(explained.get("findings", []))))
    lines += _lines("ready", _endpoint_texts(list(map(mapping, items(explained["endpoints"])))))
    lines.append(_line("answer", str(explained["rcode"])))
    lines += [_line("", str(record)) for record in items(explained["answer"])]
    return "\n".join(lines)


def _policy_text(policy: Mapping[str, object]) -> str:
    """The object of an explanation as text, of a server that has no guards, too."""
    keys = policy["problem"] or ", ".join(map(str, items(policy["keys"])))
    named_keys = ": ".join(str(each) for each in (policy["source"], keys) if each)
    return f"{named_keys or 'no keys'}{guards_text(policy)}"


def guards_text(having: Mapping[str, object]) -> str:
    """The guards of an object with a member of that name: `; min-endpoints 2, max-load 1.5`, "" for none."""
    guards = mapping(having.get("guards", {}))
    return f"; {', '.join(f'{name} {value}' for name, value in guards.items())}" if guards else ""


def _endpoint_texts(endpoints: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """The first ENDPOINTS of these with their verdicts; those with a fault come before others."""
    faulty = [each for each in endpoints if each["fault"] is not None]
    ordered = [*faulty, *(each for each in endpoints if each["fault"] is None)]
    for each in ordered[:ENDPOINTS]:
        why = "; ".join(str(each[part]) for part in ("fault", "because") if each[part])
        verdict = "yes" if each["answered"] else "no"
        yield f"{verdict:3} {each['address']} on {each['node'] or 'no node'}{': ' if why else ''}{why}"
    if len(ordered) > ENDPOINTS:
        rest = ordered[ENDPOINTS:]
        answered = sum(1 for each in rest if each["answered"])
        yield f"and {len(rest)} more, {answered} of them yes (--json has all)"


def who_text(reply: Mapping[str, object]) -> str:
    """The object of `who.who_reply` as text."""
    lines = [_line("address", str(reply["address"]))]
    for cluster in map(mapping, items(reply["clusters"])):
        lines += _location_lines(cluster)
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


def top_text(document: Mapping[str, object]) -> str:
    """The TopDocument as a table."""
    total = integer(document["queries"])
    lines = [
        f"about {total:,} queries in {document['minutes']} minutes, by a sample of {integer(document['sampled']):,}"
    ]
    if total:
        column = "NAME" if document["by"] == "nxdomain" else str(document["by"]).upper()
        lines += ["", _top_row("QUERIES", "SHARE", column)]
    rows = [(str(row["value"]), integer(row["queries"])) for row in map(mapping, items(document["rows"]))]
    others = integer(document["others"])
    for value, queries in [*rows, *([("others", others)] if others else [])]:
        lines.append(_top_row(f"{queries:,}", f"{100 * queries / total:.1f} %", value))
    return "\n".join(lines)


def _top_row(queries: str, share: str, value: str) -> str:
    return f"{queries:>11}  {share:>7}  {value}"


def _location_lines(cluster: Mapping[str, object]) -> Iterator[str]:
    view = f", view {cluster['view']}" if cluster["view"] else ""
    yield _line("cluster", ", ".join(map(str, items(cluster["origins"]))) + view)
    yield _line("node", _node_text(cluster["node"], cluster["method"]) or "unknown")
    if cluster["zone"]:
        yield _line("zone", str(cluster["zone"]))
    yield from _lines("labels", (f"{key} = {value}" for key, value in mapping(cluster["labels"]).items()))
    yield from _lines("lacks", map(str, items(cluster["lacking"])))
    yield _line("because", str(cluster["because"]))
    yield from _lines("methods", map(_method_text, map(mapping, items(cluster["methods"]))))
    yield from _lines("but", map(str, items(cluster["contradictions"])))
    if cluster["hint"]:
        yield _line("hint", str(cluster["hint"]))


def _node_text(node: object, method: object) -> str:
    """A client's Node and how it was found, in words if there are some for this method; "" for an unknown one."""
    return f"{node} ({_METHODS.get(str(method), method)})" if node else ""


def _method_text(evidence: Mapping[str, object]) -> str:
    unused = "" if evidence["used"] else " (not in `locate`)"
    return f"{evidence['method']}{unused}: {evidence['node'] or 'unknown'}, {evidence['because']}"


def _lines(word: str, texts: Iterator[str]) -> Iterator[str]:
    """One line for each text, the word in front of the first."""
    for at, text in enumerate(texts):
        yield _line("" if at else word, text)


def _line(word: str, text: str) -> str:
    """One line, whatever names and labels are in the text."""
    return f"{word:{_LABEL}}{printable(text)}"


def wide_audit_text(document: Mapping[str, object]) -> str:
    """As `audit_text`, with every cell of the table whole, and each finding on one line."""
    return audit_text(document, _UNLIMITED)


def audit_text(document: Mapping[str, object], width: int = WIDTH) -> str:
    """The document of `audit.document_steps` as text of so many columns: a table of the Services, the worst first."""
    clusters = [mapping(each) for each in items(document["clusters"])]
    if not clusters:
        return "no cluster has the directive `topology`"
    return "\n\n".join("\n".join(_cluster_lines(cluster, len(clusters) > 1, width)) for cluster in clusters)


def _cluster_lines(cluster: Mapping[str, object], several: bool, width: int) -> Iterator[str]:
    if several:
        yield f"cluster {' '.join(map(str, items(cluster['origins'])))}"
    for line in items(cluster["waiting"]):
        yield f"not complete, waiting for {line}"
    for line in items(cluster.get("skipped", [])):
        yield f"not complete: {line}"
    if cluster["what_if"] is not None:
        yield from _what_if_lines(mapping(cluster["what_if"]), mapping(cluster["counts"]), width)
        return
    services, left_out = list(items(cluster["services"])), _number(cluster["services_left_out"])
    total = len(services) + left_out
    size = f"{counted(cluster['nodes'], 'Node')}, {counted(total, 'Service')} with keys or guards"
    yield f"{size}: {_severities(cluster['counts'])}"
    for found in items(cluster["others"]):
        yield from _finding_lines(mapping(found), width, with_service=True)
    yield from _left_out(cluster["others_left_out"], "finding")
    if not total:
        return
    yield ""
    rows = [_cells(service) for service in map(mapping, services)]
    columns = _COLUMNS if width <= WIDTH else _columns_of(rows)
    yield _row((name for name, _ in columns), columns)
    for service, row in zip(map(mapping, services), rows, strict=True):
        yield _row(row, columns)
        for found in items(service["findings"]):
            yield from _finding_lines(mapping(found), width)
    yield from _left_out(left_out, "Service")


def _cells(service: Mapping[str, object]) -> tuple[str, ...]:
    """The cells of a Service in the columns of _COLUMNS."""
    zones = [mapping(each) for each in items(service["zones"])]
    populated = [each for each in zones if each["zone"] and each["nodes"]]
    whole = sum(each["covered"] == each["nodes"] for each in populated)
    keys = ",".join(map(str, items(service["keys"])))
    return (
        str(service["service"]),
        (keys or f"({service['source'] or 'none'})") + guards_text(service),
        str(service["endpoints"]),
        f"{service['covered']} of {service['nodes']}",
        f"{whole} of {len(populated)}",
        f"{_ratio(service['skew'])}",
    )


def _columns_of(rows: Sequence[Sequence[str]]) -> tuple[tuple[str, int], ...]:
    """_COLUMNS, each as wide as its widest cell."""
    widest = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    sizes = zip(_COLUMNS, widest, strict=True)
    return tuple((name, max(width, most) if width > 0 else min(width, -most)) for (name, width), most in sizes)


def _row(cells: Iterable[str], columns: Iterable[tuple[str, int]]) -> str:
    """One line of the table. A text wider than its column takes the place of the blanks behind it, or is cut."""
    line = ""
    end = 0
    for cell, (_, width) in zip(cells, columns, strict=True):
        end += abs(width) + 1
        if width < 0:
            room = end - 1 - len(line)
            line += cell if len(cell) <= room else f"{cell[: room - 1]}…"
            line = line.ljust(end)
        else:
            line = line[: end - 1 - len(cell)] + cell.rjust(end - 1 - len(line)) + " "
    return line.rstrip()


def _finding_lines(
    found: Mapping[str, object], width: int, with_service: bool = False, sign: str = " "
) -> Iterator[str]:
    service = f"{found['service']}: " if with_service and found["service"] else ""
    text = f"{service}{found['kind']}: {found['text']}"
    lines = wrap(text, width - 12, break_on_hyphens=False) or [""]
    yield f"  {sign} {found['severity']:<7} {lines[0]}"
    for line in lines[1:]:
        yield f"{'':12}{line}"


def _what_if_lines(what_if: Mapping[str, object], before: Mapping[str, object], width: int) -> Iterator[str]:
    yield f"what if {' and '.join(map(str, items(what_if['changes'])))}"
    yield f"findings: {_severities(before)} -> {_severities(what_if['counts'])}"
    services = [mapping(each) for each in items(what_if["services"])]
    if not services:
        yield "no Service changes"
    for service in services:
        yield ""
        yield f"{service['service']}"
        yield from _changed_numbers(mapping(service["before"]), mapping(service["after"]))
        for sign, findings in (("-", service["gone"]), ("+", service["new"])):
            for found in items(findings):
                yield from _finding_lines(mapping(found), width, sign=sign)
    yield from _left_out(what_if["services_left_out"], "Service")


def _changed_numbers(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    """One line for the keys if they differ, and one for the numbers."""
    keys = [",".join(map(str, items(each["keys"]))) or "none" for each in (before, after)]
    if keys[0] != keys[1]:
        yield f"    keys {keys[0]} -> {keys[1]}"
    texts = [
        (f"{each['endpoints']}", f"{each['covered']} of {each['nodes']}", _ratio(each["skew"]))
        for each in (before, after)
    ]
    named = zip(("ready endpoints", "Nodes covered", "skew"), *texts, strict=True)
    parts = [f"{name} {old} -> {new}" for name, old, new in named if old != new]
    if parts:
        yield f"    {', '.join(parts)}"


def _left_out(count: object, noun: str) -> Iterator[str]:
    if count:
        yield f"and {counted(count, f'more {noun}')}"


def _severities(counts: object) -> str:
    numbers = [(severity, mapping(counts)[severity]) for severity in _SEVERITIES]
    found = [f"{number} info" if each == "info" else counted(number, each) for each, number in numbers if number]
    return ", ".join(found) or "nothing found"


def _ratio(value: object) -> str:
    return f"{_number(value):.1f}" if value else "-"


def _number(value: object) -> int | float:
    if not isinstance(value, int | float):
        raise TypeError("number")
    return value


def integer(value: object) -> int:
    """`value`, a whole number of JSON. Raises TypeError if it is none."""
    if not isinstance(value, int):
        raise TypeError(f"expected a number, found {type(value).__name__}")
    return value


def mapping(value: object) -> Mapping[str, object]:
    """`value`, an object of JSON. Raises TypeError if it is none."""
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, found {type(value).__name__}")
    return value


def items(value: object) -> Iterable[object]:
    """`value`, an array of JSON. Raises TypeError if it is none."""
    if not isinstance(value, list):
        raise TypeError(f"expected an array, found {type(value).__name__}")
    return value
