"""Names compared and replaced as text, the way `settings.rewrite` says. Knows no query and no record."""

import re
from collections.abc import Callable
from typing import Final

from topodns.dns.names import name_text, name_wire, parse_name, wire_labels
from topodns.settings.pattern import compile_pattern
from topodns.settings.rewrite import Comparison, Match

Rename = Callable[[str], str | None]
"""The new name of a name, both as text; None where it keeps its own."""

_GROUP: Final = re.compile(r"\{(0|[1-9][0-9]*)\}")


def matcher(match: Match) -> Callable[[str], bool]:
    """Whether a name, lower-case, is one that `match` is for."""
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


def renaming(match: Match, replacement: str) -> Rename:
    """What becomes of a lower-case name that `match` is for. The groups that a regular expression's takes are there."""
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
    """Names with this ending, in whatever case, have the other one."""

    def rename(name: str) -> str | None:
        return name[: len(name) - len(suffix)] + replacement if name.lower().endswith(suffix) else None

    return rename


def pattern_renaming(expression: str, replacement: str) -> Rename:
    """Names in which the expression is found become the replacement, with {N} replaced by what group N found.

    What a group found is not looked through for further {N}: it is the client's, who must not write the rule.
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


def turning_back(inner: str, outer: str) -> Rename:
    """The name `inner`, in whatever case, becomes `outer`; and names below it, names below that."""
    below = "." + inner

    def rename(name: str) -> str | None:
        lower = name.lower()
        if lower == inner:
            return outer
        return name[: len(name) - len(inner)] + outer if lower.endswith(below) else None

    return rename


def renamed_wire(wire: bytes, rename: Rename) -> bytes:
    """A wire-form name under its new name. Raises BadName where that is none."""
    text = name_text(wire_labels(wire))
    renamed = rename(text)
    return wire if renamed is None or renamed == text else name_wire(parse_name(renamed))
