"""Label selectors in kubectl's syntax: `app=web,tier!=db,env in (a,b),zone notin (c),key,!other`.

The grammar is that of k8s.io/apimachinery/pkg/labels without `<` and `>`, which CoreDNS refuses too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from topodns.cluster.api_names import is_label_key, is_label_value

_TOKEN: Final = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+)")
_SYMBOLS: Final = frozenset(("==", "!=", "=", "!", "<", ">", "(", ")", ","))
_END: Final = "the end"  # cannot be a token: words contain no space


class BadSelector(ValueError):
    """Invalid label selector; the message has what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """The label `key` exists with one of `values` (None: with any value); with `wanted` False the opposite."""

    key: str
    values: frozenset[str] | None = None
    wanted: bool = True

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        found = value is not None and (self.values is None or value in self.values)
        return found == self.wanted


@dataclass(frozen=True, slots=True)
class Selector:
    """A conjunction of requirements; matches every label set when empty. Made by `parse_selector`."""

    text: str = ""
    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether all requirements hold for these labels."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse_selector(text: str) -> Selector:
    """Parse a selector. Raises BadSelector."""
    tokens = _Tokens(text)
    if tokens.next == _END:
        return Selector(text)
    requirements = [_parse_requirement(tokens)]
    while tokens.next != _END:
        tokens.take_symbol(",")
        requirements.append(_parse_requirement(tokens))
    return Selector(text, tuple(requirements))


class _Tokens:
    """The tokens of a selector, from left to right; `next` is the following token, or `_END`."""

    def __init__(self, text: str) -> None:
        self._left: list[str] = [*_TOKEN.findall(text), _END]
        self._left.reverse()

    @property
    def next(self) -> str:
        return self._left[-1]

    @property
    def at_word(self) -> bool:
        return self.next != _END and self.next not in _SYMBOLS

    def take(self) -> str:
        return self._left.pop()

    def take_symbol(self, *wanted: str) -> str:
        if self.next not in wanted:
            raise BadSelector(f"found {_shown(self.next)}, expected {' or '.join(map(_shown, wanted))}")
        return self.take()

    def take_word(self, what: str) -> str:
        if not self.at_word:
            raise BadSelector(f"found {_shown(self.next)}, expected {what}")
        return self.take()


def _parse_requirement(tokens: _Tokens) -> Requirement:
    if tokens.next == "!":
        tokens.take()
        return Requirement(_parse_key(tokens), wanted=False)
    key = _parse_key(tokens)
    if tokens.next in (",", _END):
        return Requirement(key)
    operator = tokens.take()
    if operator in ("=", "==", "!="):
        return Requirement(key, frozenset((_parse_value(tokens),)), wanted=operator != "!=")
    if operator in ("in", "notin"):
        return Requirement(key, _parse_values(tokens), wanted=operator == "in")
    raise BadSelector(f"found {_shown(operator)} after {_shown(key)}, expected one of = == != in notin")


def _parse_key(tokens: _Tokens) -> str:
    key = tokens.take_word("a label key")
    if not is_label_key(key):
        raise BadSelector(f"{_shown(key)} is no label key")
    return key


def _parse_value(tokens: _Tokens) -> str:
    """A label value, which may be empty."""
    if not tokens.at_word:
        return ""
    value = tokens.take()
    if not is_label_value(value):
        raise BadSelector(f"{_shown(value)} is no label value")
    return value


def _parse_values(tokens: _Tokens) -> frozenset[str]:
    tokens.take_symbol("(")
    values = [_parse_value(tokens)]
    while tokens.take_symbol(",", ")") == ",":
        values.append(_parse_value(tokens))
    return frozenset(values)


def _shown(token: str) -> str:
    return token if token == _END else f'"{token}"'
