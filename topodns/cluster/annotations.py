"""The annotations that topodns reads, and those that look like one of them and have no effect.

The chart's ValidatingAdmissionPolicy has the same regular expressions: tests/unit/cluster/test_annotations.py compares
the two.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

DOMAIN: Final = "topodns.io/"
TOPOLOGY_KEYS: Final = "topodns.io/topology-keys"
TTL: Final = "topodns.io/ttl"
MIN_ENDPOINTS: Final = "topodns.io/min-endpoints"
MAX_LOAD: Final = "topodns.io/max-load"
MAX_ENDPOINTS: Final = "topodns.io/max-endpoints"
APPLY_TO: Final = "topodns.io/apply-to"
OPENYURT: Final = "openyurt.io/topologyKeys"
SUPEREDGE: Final = "topologyKeys"
GUARDS: Final = (MIN_ENDPOINTS, MAX_LOAD, MAX_ENDPOINTS, APPLY_TO)
OWN: Final = (TOPOLOGY_KEYS, TTL, *GUARDS)
READ: Final = (*OWN, OPENYURT, SUPEREDGE)
WORKLOADS: Final = frozenset(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"))

MAX_BAD: Final = 5  # annotations of one object that are kept
_LONGEST_NAME: Final = 317  # characters of an annotation's name in the API
_SHOWN: Final = 40  # characters of a value in JSON


class BadAnnotation(NamedTuple):
    """An annotation that has no effect where it is, or a label in the place of one."""

    name: str
    meant: str  # the annotation with the nearest name; "" for none
    value: str = ""  # as JSON, if it is no text; "" for a text
    is_label: bool = False


def one_letter_off(word: str) -> str:
    """A regular expression for a word in which one letter may be missing, wrong, added or swapped with the next."""
    edits = (f"{word[:at]}.{{0,2}}{word[at + 1 :]}" for at in range(len(word)))
    swaps = (f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}" for at in range(len(word) - 1))
    return f"(?:{'|'.join((*edits, *swaps))})"


# Of a name in lower case, without the characters of _SEPARATORS.
SEPARATORS: Final = "-_."
NEAR_KEYS: Final = f"^(?:.*/)?{one_letter_off('topologykeys')}$"
NEAR_DOMAIN_KEYS: Final = "^[^/]*topodns[^/]*/.*(?:key|top)"
NEAR_DOMAIN_TTL: Final = f"^[^/]*topodns[^/]*/(?:.*ttl.*|{one_letter_off('ttl')})$"
NEAR_DOMAIN_OTHERS: Final = {
    MIN_ENDPOINTS: "^[^/]*topodns[^/]*/min",
    MAX_LOAD: "^[^/]*topodns[^/]*/.*load",
    MAX_ENDPOINTS: "^[^/]*topodns[^/]*/.*endpoint",
    APPLY_TO: "^[^/]*topodns[^/]*/.*appl",
}
"""The first that matches is the annotation that is meant."""
OWN_DOMAIN: Final = "^topodnsio/"
OPENYURT_DOMAIN: Final = "^openyurtio/"

_KEYS: Final = re.compile(f"{NEAR_KEYS}|{NEAR_DOMAIN_KEYS}")
_TTL: Final = re.compile(NEAR_DOMAIN_TTL)
_OTHERS: Final = {name: re.compile(pattern) for name, pattern in NEAR_DOMAIN_OTHERS.items()}
_OWN: Final = re.compile(OWN_DOMAIN)
_OPENYURT: Final = re.compile(OPENYURT_DOMAIN)
_WITHOUT_SEPARATORS: Final = str.maketrans("", "", SEPARATORS)


@lru_cache(2048)
def meant_by(name: str) -> str | None:
    """The annotation of READ that this name is, or that it most likely should be.

    "" if it is below topodns.io/ and like none of them; None if it has nothing to do with topodns.
    """
    if name in READ:
        return name
    if len(name) > _LONGEST_NAME:
        return None
    squeezed = name.lower().translate(_WITHOUT_SEPARATORS)
    if _KEYS.search(squeezed):
        return OPENYURT if _OPENYURT.search(squeezed) else TOPOLOGY_KEYS
    if _TTL.search(squeezed):
        return TTL
    other = next((name for name, pattern in _OTHERS.items() if pattern.search(squeezed)), None)
    return other or ("" if _OWN.search(squeezed) else None)


def bad_on_service(
    annotations: Mapping[str, Any], labels: Mapping[str, str] = MappingProxyType({})
) -> tuple[BadAnnotation, ...]:
    """The annotations of a Service whose names are unknown, and those that topodns reads with another value than text;
    and its labels that look like an annotation of topodns.

    An API server has texts alone; in manifests a number, `true` or a list may stand without quotes.
    """
    found = [
        BadAnnotation(name, meant, "" if isinstance(value, str) else shown_value(value))
        for name, value in annotations.items()
        if (meant := meant_by(name)) is not None and (meant != name or not isinstance(value, str))
    ]
    return tuple([*found, *_bad_labels(labels)][:MAX_BAD])


def bad_on_namespace(annotations: Mapping[str, Any], labels: Mapping[str, str]) -> tuple[BadAnnotation, ...]:
    """The annotations of a Namespace that are unknown or that only a Service can have; labels as of a Service."""
    read = (*OWN, "")
    found = [
        BadAnnotation(name, meant)
        for name in annotations
        if name != TOPOLOGY_KEYS and (meant := meant_by(name)) is not None and meant in read
    ]
    return tuple([*found, *_bad_labels(labels)][:MAX_BAD])


def _bad_labels(labels: Mapping[str, str]) -> Iterator[BadAnnotation]:
    return (BadAnnotation(name, meant, is_label=True) for name in labels if (meant := meant_by(name)) in OWN and meant)


def shown_value(value: object, longest: int = _SHOWN) -> str:
    """A value of an annotation as JSON, cut to `longest` characters."""
    text = json.dumps(value, default=str)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def expected_text(shown: str) -> str:
    """The message about a value, in JSON, that is no text."""
    advice = "write its items as one text, such as 'a,b'" if shown.startswith("[") else "put it in quotes"
    return f"expected text, found {shown}: {advice}"


def bad_elsewhere(annotations: Mapping[str, Any]) -> tuple[BadAnnotation, ...]:
    """The annotations that only a Service can have, of an object of another kind, such as a Pod: those of topodns, and
    what looks like one of them.
    """
    found = [name for name in annotations if meant_by(name) in OWN]
    return _elsewhere(tuple(found[:MAX_BAD])) if found else ()


@lru_cache(256)
def _elsewhere(names: tuple[str, ...]) -> tuple[BadAnnotation, ...]:
    """One value for all Pods of a workload: they have the same annotations."""
    return tuple(BadAnnotation(name, meant_by(name) or "") for name in names)


def bad_in_workload(kind: str, source: Mapping[str, Any]) -> Iterator[str]:
    """The problems of annotations of a parsed object that makes Pods: its own, and those of its Pod template.

    Nothing else of such an object is read; none for another kind than WORKLOADS.
    """
    template = _within(source, "spec", "template") if kind in WORKLOADS else {}
    for of, one in ((kind, source if kind in WORKLOADS else {}), ("Pod", template)):
        for bad in bad_elsewhere(_within(one, "metadata", "annotations")):
            yield problem_elsewhere(bad, of)


def _within(source: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        found = source.get(name)
        source = found if isinstance(found, dict) else {}
    return source


def problem_elsewhere(bad: BadAnnotation, kind: str) -> str:
    """The sentence about an annotation, or label, of an object of this kind other than Service."""
    unknown = kind == "Namespace" and bad.meant in ("", TOPOLOGY_KEYS)
    if bad.is_label or unknown:
        return problem_of_name(bad, (TOPOLOGY_KEYS,))
    article = "an" if kind == "EndpointSlice" else "a"
    return f"annotation {bad.name!r} has no effect on {article} {kind}: put {bad.meant!r} on the Service"


def problem_of_name(bad: BadAnnotation, expected: Sequence[str] = OWN) -> str:
    """The sentence about an unknown annotation, or a label, of an object with annotations that topodns reads."""
    if bad.is_label:
        return f"label {bad.name!r} has no effect, did you mean the annotation {bad.meant!r}?"
    if bad.meant:
        return f"annotation {bad.name!r} is unknown and has no effect, did you mean {bad.meant!r}?"
    *others, last = map(repr, expected)
    names = f"{', '.join(others)} or {last}" if others else last
    return f"annotation {bad.name!r} is unknown and has no effect, expected {names}"
