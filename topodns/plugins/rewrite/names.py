"""Comparison and replacement of names as text, as defined in `plugins.rewrite.settings`; no queries, no records."""

import re
from collections.abc import Callable
from typing import Final

from topodns.dns.name import name_text, name_wire, parse_name, wire_labels
from topodns.plugins.rewrite.settings import Comparison, NameMatch
from topodns.query.regex import compile_pattern

Rename = Callable[[str], str | None]
"""Maps a name to its new name, both as text; None if it does not change."""

_GROUP: Final = re.compile(r"\{(0|[1-9][0-9]*)\}")


def matcher(match: NameMatch) -> Callable[[str], bool]:
    """A predicate: whether a name matches, in lower case and with the final dot. A regular expression may match a part.

    Raises BadPattern for an invalid expression.
    """
    text = match.text
    match match.comparison:
        case Comparison.EXACT:
            return lambda name: name == text
        case Comparison.PREFIX:
            return lambda name: name.startswith(text)
        case Comparison.SUFFIX:
            return lambda name: name.endswith(text)
        case Comparison.SUBSTRING:
            return lambda name: text in name
        case Comparison.REGEX:
            pattern = compile_pattern(text)
            return lambda name: pattern.search(name) is not None


def renaming(match: NameMatch, replacement: str) -> Rename:
    """The renaming of lower-case names that match. All groups in a regular expression's replacement must exist."""
    text = match.text
    match match.comparison:
        case Comparison.EXACT:
            return lambda name: replacement if name == text else None
        case Comparison.PREFIX:
            return lambda name: replacement + name[len(text) :] if name.startswith(text) else None
        case Comparison.SUFFIX:
            return suffix_renaming(text, replacement)
        case Comparison.SUBSTRING:
            return lambda name: name.replace(text, replacement) if text in name else None
        case Comparison.REGEX:
            return pattern_renaming(text, replacement)


def suffix_renaming(suffix: str, replacement: str) -> Rename:
    """A function that replaces the lower-case `suffix` of names, compared case-insensitively."""

    def rename(name: str) -> str | None:
        return name[: len(name) - len(suffix)] + replacement if name.lower().endswith(suffix) else None

    return rename


def pattern_renaming(expression: str, replacement: str) -> Rename:
    """A function that replaces whole names in which the expression matches by the replacement, with {N} in it replaced
    by the text of group N.

    {N} in the text of a group is not replaced, since that text comes from the client.
    """
    pattern = compile_pattern(expression)
    literals, groups = _GROUP.split(replacement)[::2], [int(number) for number in _GROUP.findall(replacement)]

    def rename(name: str) -> str | None:
        found = pattern.search(name)
        if found is None:
            return None
        values = (found.group(number) or "" for number in groups)
        return literals[0] + "".join(value + literal for value, literal in zip(values, literals[1:], strict=True))

    return rename


def reverting(inner: str, outer: str) -> Rename:
    """A function that replaces the lower-case name `inner`, compared case-insensitively, by `outer`, also as the suffix
    of names below it.
    """
    below = "." + inner

    def rename(name: str) -> str | None:
        lower = name.lower()
        if lower == inner:
            return outer
        return name[: len(name) - len(inner)] + outer if lower.endswith(below) else None

    return rename


def renamed_wire(wire: bytes, rename: Rename) -> bytes:
    """The new name of a wire-form name, in wire form; `wire` if it does not change. Raises BadName if it is invalid."""
    text = name_text(wire_labels(wire))
    renamed = rename(text)
    return wire if renamed is None or renamed == text else name_wire(parse_name(renamed))
