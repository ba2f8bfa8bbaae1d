"""The document of an audit as text for people: a table of the Services, the worst first, in 120 columns."""

from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap
from typing import Final

from topodns.inspect.coverage_findings import counted
from topodns.inspect.explain.explanation import items, mapping

WIDTH: Final = 120

_COLUMNS: Final = (("SERVICE", -32), ("KEYS", -46), ("READY", 6), ("NODES COVERED", 14), ("ZONES", 9), ("SKEW", 6))
_SEVERITIES: Final = ("error", "warning", "info")


def audit_text(document: Mapping[str, object]) -> str:
    """The text of a document that `document_steps` made. Raises KeyError or TypeError for another one."""
    clusters = [mapping(each) for each in items(document["clusters"])]
    if not clusters:
        return "no cluster has the directive `topology`"
    return "\n\n".join("\n".join(_cluster_lines(cluster, len(clusters) > 1)) for cluster in clusters)


def _cluster_lines(cluster: Mapping[str, object], several: bool) -> Iterator[str]:
    if several:
        yield f"cluster {' '.join(map(str, items(cluster['origins'])))}"
    for line in items(cluster["waiting"]):
        yield f"not complete, waiting for {line}"
    if cluster["what_if"] is not None:
        yield from _what_if_lines(mapping(cluster["what_if"]), mapping(cluster["counts"]))
        return
    services, left_out = list(items(cluster["services"])), _number(cluster["services_left_out"])
    total = len(services) + left_out
    size = f"{counted(cluster['nodes'], 'Node')}, {counted(total, 'Service')} with keys"
    yield f"{size}: {_severities(cluster['counts'])}"
    for found in items(cluster["others"]):
        yield from _finding_lines(mapping(found), with_service=True)
    yield from _left_out(cluster["others_left_out"], "finding")
    if not total:
        return
    yield ""
    yield _row(name for name, _ in _COLUMNS)
    for service in map(mapping, services):
        yield from _service_lines(service)
    yield from _left_out(left_out, "Service")


def _service_lines(service: Mapping[str, object]) -> Iterator[str]:
    zones = [mapping(each) for each in items(service["zones"])]
    populated = [each for each in zones if each["zone"] and each["nodes"]]
    whole = sum(each["covered"] == each["nodes"] for each in populated)
    keys = ",".join(map(str, items(service["keys"])))
    yield _row(
        (
            str(service["service"]),
            keys or f"({service['source'] or 'none'})",
            str(service["endpoints"]),
            f"{service['covered']} of {service['nodes']}",
            f"{whole} of {len(populated)}",
            f"{_ratio(service['skew'])}",
        )
    )
    for found in items(service["findings"]):
        yield from _finding_lines(mapping(found))


def _row(cells: Iterable[str]) -> str:
    """One line of the table. A text wider than its column takes the place of the blanks behind it, or is cut."""
    line = ""
    end = 0
    for cell, (_, width) in zip(cells, _COLUMNS, strict=True):
        end += abs(width) + 1
        if width < 0:
            room = end - 1 - len(line)
            line += cell if len(cell) <= room else f"{cell[: room - 1]}…"
            line = line.ljust(end)
        else:
            line = line[: end - 1 - len(cell)] + cell.rjust(end - 1 - len(line)) + " "
    return line.rstrip()


def _finding_lines(found: Mapping[str, object], with_service: bool = False, sign: str = " ") -> Iterator[str]:
    service = f"{found['service']}: " if with_service and found["service"] else ""
    text = f"{service}{found['kind']}: {found['text']}"
    lines = wrap(text, WIDTH - 12, break_on_hyphens=False) or [""]
    yield f"  {sign} {found['severity']:<7} {lines[0]}"
    for line in lines[1:]:
        yield f"{'':12}{line}"


def _what_if_lines(what_if: Mapping[str, object], before: Mapping[str, object]) -> Iterator[str]:
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
                yield from _finding_lines(mapping(found), sign=sign)
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
        yield f"and {count} more {noun}{'' if count == 1 else 's'}"


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
