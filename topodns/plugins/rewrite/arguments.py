"""The words of a `rewrite` directive in order, and the names and patterns among them.

CoreDNS takes the words of a body as if they stood on the directive's line, so where a line ends means nothing here but
in messages.
"""

from typing import Final

from topodns.config.corefile import Directive
from topodns.config.errors import ConfigError, hint, shown
from topodns.dns.names import BadName, name_text, parse_name
from topodns.settings.pattern import BadPattern, compile_pattern
from topodns.settings.rewrite import Comparison, Match

_COMPARISONS: Final = {comparison.value: comparison for comparison in Comparison}
_MAX_GROUPS: Final = 100  # CoreDNS looks for {0} to {100}


class Words:
    """What is left of the words. Errors are those of the line on which the word taken last stands."""

    def __init__(self, directive: Directive) -> None:
        self._words = [(word, directive) for word in directive.args]
        self._at = 0
        self._directive = directive
        if len(directive.args) > 1 and directive.body:
            raise directive.body[0].error("found a body, expected all the words of the rule on the line or in the body")
        for line in directive.body:
            if line.body:
                raise line.body[0].error(f"found {shown(line.body[0].name)}, but {shown(line.name)} has no options")
            self._words += [(word, line) for word in (line.name, *line.args)]

    @property
    def left(self) -> int:
        return len(self._words) - self._at

    def peek(self, ahead: int = 0) -> str | None:
        """The word that is so many words away, None behind the last."""
        return self._words[self._at + ahead][0] if ahead < self.left else None

    def take(self, expected: str) -> str:
        """The next word."""
        if not self.left:
            before = f"after {shown(self._words[-1][0])}" if self._words else "in it"
            raise self.error(f"'rewrite' has nothing {before}, expected {expected}")
        self._at += 1
        return self._words[self._at - 1][0]

    def take_if(self, word: str) -> bool:
        """Whether the next word is this one; then it is taken."""
        there = self.peek() == word
        self._at += there
        return there

    def end(self) -> None:
        """Refuse what is left."""
        if self.left:
            word = self.take("")
            raise self.error(f"found {shown(word)} after {shown(self._words[self._at - 2][0])}, expected nothing more")

    def error(self, problem: str) -> ConfigError:
        line = self._words[self._at - 1][1] if self._at else self._directive
        return line.error(problem)


def take_match(words: Words, after: int, final_dot: bool = True) -> Match:
    """`[exact|prefix|suffix|substring|regex] FROM`, where `after` words are still to come.

    It is exact where nothing says how to compare; then more words may not follow. Fragments get a final dot, as names
    have one, unless told otherwise.
    """
    comparison = _take_comparison(words, after)
    match comparison:
        case Comparison.EXACT:
            return Match(comparison, take_name(words))
        case Comparison.REGEX:
            return Match(comparison, take_pattern(words))
        case _:
            return Match(comparison, _fragment(words, words.take("the part of a name"), final_dot))


def _take_comparison(words: Words, after: int) -> Comparison:
    word = words.peek() or ""
    comparison = _COMPARISONS.get(word.lower())
    if comparison is None and words.left <= after + 1:
        return Comparison.EXACT
    words.take("a comparison")
    if comparison is None:
        raise words.error(f"found {shown(word)} with {words.left} words after it{hint(word, _COMPARISONS)}")
    return comparison


def take_name(words: Words) -> str:
    """A whole name, as text with the final dot."""
    text = words.take("a name")
    try:
        return name_text(parse_name(text))
    except BadName as problem:
        raise words.error(f"found {problem}, expected a name") from None


def take_pattern(words: Words) -> str:
    text = words.take("a regular expression")
    try:
        compile_pattern(text)
    except BadPattern as problem:
        raise words.error(f"found {shown(text)}, expected a regular expression: {problem}") from None
    return text


def take_replacement(words: Words, match: Match, final_dot: bool = True) -> str:
    """What takes the place of what matched."""
    match match.comparison:
        case Comparison.EXACT:
            return take_name(words)
        case Comparison.REGEX:
            return take_filled_in(words, match.text, final_dot)
        case _:
            return _fragment(words, words.take("the replacement"), final_dot)


def take_filled_in(words: Words, expression: str, final_dot: bool = True) -> str:
    """A replacement with {N} for what group N of the expression found."""
    text = words.take("the replacement")
    groups = compile_pattern(expression).groups
    for number in range(groups + 1, _MAX_GROUPS + 1):
        if f"{{{number}}}" in text:
            raise words.error(f"found {{{number}}} in {shown(text)}, but {shown(expression)} has no group {number}")
    return _fragment(words, text, final_dot)


def _fragment(words: Words, text: str, final_dot: bool) -> str:
    """Part of a name, as names are written: in lower case."""
    if not text.isascii():
        raise words.error(f"found {shown(text)}, expected ASCII; write IDNs in their A-label (xn--) form")
    lower = text.lower()
    return lower if not final_dot or lower.endswith(".") else lower + "."
