"""Misspelt fields, kinds and apiVersions of manifests, which nothing reads, and which an API server would refuse; and
annotations of objects that make Pods, which an API server takes.

A word is taken for a known one that differs in case, in `-`, `_` and `.`, in one letter, or in the `es` of a plural.
The kinds of the API have no other field so near to one that is read.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Final, get_args

from topodns.cluster.annotations import SEPARATORS, bad_in_workload, one_letter_off
from topodns.cluster.decode.objects import RULES
from topodns.cluster.decode.structs import ApiMetadata, ApiStruct
from topodns.cluster.decode.unreadable_elements import field_types

_SHORT: Final = 4  # characters; of a shorter word only the case may differ
_LONGEST: Final = 100  # characters of a word that is compared
_KINDS: Final = tuple(RULES)
_API_VERSIONS: Final = frozenset(version for rule in RULES.values() for version in rule.api_versions)
_WITHOUT_SEPARATORS: Final = str.maketrans("", "", SEPARATORS)


def misspellings(kind: str, document: Mapping[str, Any]) -> list[str]:
    """A clause for each misspelt or misplaced word of a parsed document of this kind, with the word or the place that
    may be meant.
    """
    rule, version = RULES.get(kind), document.get("apiVersion") or ""
    found = list(bad_in_workload(kind, document))
    if not isinstance(version, str):  # the decoder refuses such an object
        return found
    if rule is None:
        meant = nearest(kind, _KINDS)
        if meant and (not version or version in RULES[meant].api_versions):
            found.append(f"kind {kind!r} is unknown and the object ignored, did you mean {meant!r}?")
    elif not version or version in rule.api_versions:
        _search(document, rule.reader.struct, (), found)
    elif version in _API_VERSIONS or nearest(version, sorted(rule.api_versions)):
        expected = " or ".join(sorted(rule.api_versions))
        found.append(f"the object is ignored: {kind} has apiVersion {version!r}, expected {expected}")
    return found


def _search(value: Mapping[str, Any], struct: type[ApiStruct], place: tuple[str, ...], found: list[str]) -> None:
    """Add the misspelt fields of an object, of which there may be thousands in one document, at this place in it."""
    known = _known(struct)
    if not value.keys() <= known.keys():
        for name in value:
            if name not in known and (meant := _meant(name, struct, not place)):
                path = "".join(place)
                found.append(f"unknown field {path}{name}, did you mean {path}{meant}?")
    for name, within in known.items():
        inner = value.get(name) if within is not None else None
        if within is None or inner is None:
            continue
        if isinstance(inner, dict):
            _search(inner, within, (*place, name, "."), found)
        elif isinstance(inner, list):
            for at, one in enumerate(inner):
                if isinstance(one, dict):
                    _search(one, within, (*place, name, f"[{at}]."), found)


@lru_cache(1000)
def _meant(name: str, struct: type[ApiStruct], outermost: bool) -> str:
    """The field that is meant by one that is unknown; "" for none. One beside `metadata` may be meant to be in it."""
    meant = nearest(name, _known(struct))
    if outermost and not meant:
        meant = nearest(name, _known(ApiMetadata))
        return meant and f"metadata.{meant}"
    return meant


@cache
def _known(struct: type[ApiStruct]) -> Mapping[str, type[ApiStruct] | None]:
    """The fields by their name in JSON, each with the struct of the objects in it, None if there are none."""
    return {name: _struct_in(expected) for name, expected in field_types(struct).items()}


def _struct_in(expected: Any) -> type[ApiStruct] | None:
    if isinstance(expected, type) and issubclass(expected, ApiStruct):
        return expected
    return next(filter(None, map(_struct_in, get_args(expected))), None)


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that may be meant by an unknown one; "" for none."""
    squeezed = _squeezed(word[:_LONGEST])
    by_case = (each for each in known if _squeezed(each) == squeezed)
    by_letter = (each for each in known if _like(each).fullmatch(squeezed))
    return next(by_case, "") or next(by_letter, "")


def _squeezed(word: str) -> str:
    return word.lower().translate(_WITHOUT_SEPARATORS)


@lru_cache(1000)
def _like(word: str) -> re.Pattern[str]:
    squeezed = _squeezed(word)
    if len(squeezed) < _SHORT:
        return re.compile(re.escape(squeezed))
    return re.compile(f"{one_letter_off(squeezed)}|{squeezed.removesuffix('es')}")
