"""Label and field selectors, as much of them as list and watch requests of a DNS server use."""

import re
from collections.abc import Callable, Mapping
from typing import Final

Matcher = Callable[[Mapping[str, str]], bool]

_TERM: Final = re.compile(
    r"(?P<absent>!)?(?P<key>[^\s!=,()]+)\s*(?:(?P<same>==?|!=)\s*(?P<value>[^,\s]*)|(?P<set>in|notin)\s*\((?P<values>[^)]*)\))?$"
)
_COMMA: Final = re.compile(r",(?![^(]*\))")


def matcher(selector: str) -> Matcher:
    """Whether labels (or fields) satisfy every term. Raises ValueError for text that is no selector."""
    terms = [_term(text.strip()) for text in _COMMA.split(selector) if text.strip()]
    return lambda labels: all(term(labels) for term in terms)


def _term(text: str) -> Matcher:
    found = _TERM.match(text)
    if found is None:
        raise ValueError(f"unable to parse requirement: {text!r}")
    key = found["key"]
    if found["same"]:
        value = found["value"]
        return lambda labels: (labels.get(key) == value) is (found["same"] != "!=")
    if found["set"]:
        values = {value.strip() for value in found["values"].split(",")}
        return lambda labels: (labels.get(key) in values) is (found["set"] == "in")
    return lambda labels: (key not in labels) is bool(found["absent"])
