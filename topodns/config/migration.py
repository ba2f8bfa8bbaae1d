"""What becomes of a CoreDNS's Corefile here, line by line: `topodns check --from coredns`.

It reads as leniently as the rest of this package reads strictly, so that one run shows everything there is to do. Only
a fault in the language itself, such as a brace too few, ends it: CoreDNS would not start with that either.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from topodns.config.coredns_directives import DIRECTIVES as ROWS
from topodns.config.coredns_directives import ELSEWHERE, TRANSPORTS, Row, Verdict
from topodns.config.corefile import Block, Directive, parse_blocks
from topodns.config.directives import DIRECTIVES, Context
from topodns.config.errors import ConfigError, nearest, shown
from topodns.config.imports import Importer
from topodns.config.keys import parse_keys
from topodns.config.lexer import Token
from topodns.config.load import settings_from_text
from topodns.dns.names import ROOT

_UNCHECKED: Final = Row(Verdict.UNCHECKED, "mend the directive first")
_GOOD: Final = frozenset({Verdict.SAME, Verdict.DIFFERS})
_SUMMED_UP: Final = {verdict: verdict.value for verdict in Verdict} | {Verdict.DIFFERS: "different"}
_LONGEST_WORD: Final = 80  # characters
_BODY_IS_ONE_RULE: Final = frozenset({"rewrite"})  # whose lines are no options

Place = tuple[str, int]
"""File and line."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one directive, option or key. `text`: how it differs, what to do instead, or why it is refused."""

    file: str
    line: int
    subject: str
    verdict: Verdict
    text: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (place, self.subject, self.verdict.value, self.text) if part)


@dataclass(frozen=True, slots=True)
class Migration:
    """All findings about a Corefile, in its order with every import in its place."""

    file: str
    findings: tuple[Finding, ...]

    @property
    def possible(self) -> bool:
        """Whether the image can be swapped with this Corefile as it is."""
        return all(finding.verdict in _GOOD for finding in self.findings)

    def __str__(self) -> str:
        """A line for each finding and the sum."""
        numbers = Counter(finding.verdict for finding in self.findings)
        counted = ", ".join(f"{numbers[verdict]} {_SUMMED_UP[verdict]}" for verdict in Verdict if numbers[verdict])
        outcome = "the image can be swapped" if self.possible else "not as it is"
        return "\n".join([*map(str, self.findings), f"{self.file}: {outcome}: {counted}"])


def examine(text: str, file: str, default_port: int, environment: Mapping[str, str]) -> Migration:
    """What becomes of this Corefile. The arguments are those of `settings_from_text`; nothing is raised."""
    importer = _LenientImporter(environment)
    try:
        blocks = parse_blocks(importer.read(text, file))
    except ConfigError as problem:
        return Migration(file, (*map(_refusal, importer.problems), _refusal(problem)))
    examined = (finding for block in blocks for finding in _block(block, os.path.dirname(file), default_port))
    findings = (*map(_refusal, importer.problems), *examined)
    if Migration(file, findings).possible:
        findings += tuple(_between_blocks(text, file, default_port, environment))
    return Migration(file, findings)


class _LenientImporter(Importer):
    """Goes on without what cannot be imported."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__(environment)
        self.problems: list[ConfigError] = []

    def _import(self, at: Token, words: list[Token], within: tuple[str, ...]) -> Iterator[Token]:
        try:
            yield from super()._import(at, words, within)
        except ConfigError as problem:
            self.problems.append(problem)


def _refusal(problem: ConfigError, subject: str = "") -> Finding:
    return Finding(problem.file, problem.line, subject, Verdict.REFUSED, problem.problem)


def _between_blocks(text: str, file: str, default_port: int, environment: Mapping[str, str]) -> Iterator[Finding]:
    """What no line shows by itself, such as two blocks for the same names."""
    try:
        settings_from_text(text, file, default_port, environment)
    except ConfigError as problem:
        yield _refusal(problem)


def _block(block: Block, directory: str, default_port: int) -> Iterator[Finding]:
    origins = []
    for token in block.keys:
        try:
            origins += [key.origin for _, key in parse_keys((token,), default_port)]
        except ConfigError as problem:
            yield _bad_key(token, problem)
        else:
            yield Finding(token.file, token.line, f"block {_word(token.text)}", Verdict.SAME)
    context = Context(tuple(dict.fromkeys(origins)) or (ROOT,), directory)
    first: dict[str, Directive] = {}
    for directive in block.directives:
        yield from _directive(directive, first.get(directive.name), context)
        first.setdefault(directive.name, directive)


def _bad_key(token: Token, problem: ConfigError) -> Finding:
    scheme, separator, _ = token.text.partition("://")
    if separator and (instead := TRANSPORTS.get(scheme)) is not None:
        return Finding(token.file, token.line, f"block {_word(token.text)}", Verdict.UNSUPPORTED, instead)
    return _refusal(problem, f"block {_word(token.text)}")


def _directive(directive: Directive, earlier: Directive | None, context: Context) -> Iterator[Finding]:
    row = ROWS.get(directive.name) or Row(Verdict.UNSUPPORTED, _stranger(directive.name))
    if row.verdict is Verdict.UNSUPPORTED:
        yield _finding(directive, row)
        yield from _all_options(directive, Row(row.verdict))
    elif earlier is not None and not DIRECTIVES[directive.name].adds_up:
        again = f"found again, first at {earlier.file}:{earlier.line}"
        yield _finding(directive, Row(Verdict.REFUSED, again))
        yield from _all_options(directive, _UNCHECKED)
    else:
        yield from _known(directive, row, _problems(directive, context))


def _stranger(name: str) -> str:
    """What to do about a directive that CoreDNS 1.14.7 does not have."""
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    near = nearest(name, ROWS)
    guess = f"; did you mean '{near}'?" if near else "; take it out, or `forward` its names to a server that has it"
    return f"CoreDNS itself has no such directive, so it is an external plugin or a slip{guess}"


def _problems(directive: Directive, context: Context) -> dict[Place, str]:
    """What is wrong with each line of a directive: after each fault it is read again without the option at fault."""
    problems: dict[Place, str] = {}
    while True:
        try:
            DIRECTIVES[directive.name].parse(directive, context)
        except ConfigError as problem:
            place = (problem.file, problem.line)
            problems.setdefault(place, problem.problem)
            rest = tuple(option for option in directive.body if (option.file, option.line) != place)
            if not rest or len(rest) == len(directive.body):
                return problems
            directive = replace(directive, body=rest)
        else:
            return problems


def _known(directive: Directive, row: Row, problems: Mapping[Place, str]) -> Iterator[Finding]:
    options = _options(directive)
    elsewhere = problems.keys() - {(option.file, option.line) for option in options}
    for file, line in sorted(elsewhere):
        yield Finding(file, line, _word(directive.name), Verdict.REFUSED, problems[file, line])
    if not elsewhere:
        yield _finding(directive, row)
    unnamed = _UNCHECKED if elsewhere else Row(Verdict.SAME)
    for option in options:
        option_row = row.options.get(option.name, unnamed)
        problem = problems.get((option.file, option.line))
        if problem is not None and option_row.verdict is not Verdict.UNSUPPORTED:
            option_row = Row(Verdict.REFUSED, problem)
        yield _finding(option, option_row, f"{directive.name} ")


def _all_options(directive: Directive, row: Row) -> Iterator[Finding]:
    return (_finding(option, row, f"{_word(directive.name)} ") for option in _options(directive))


def _options(directive: Directive) -> Iterable[Directive]:
    return () if directive.name in _BODY_IS_ONE_RULE else directive.body


def _finding(line: Directive, row: Row, owner: str = "") -> Finding:
    return Finding(line.file, line.line, f"{owner}{_word(line.name)}", row.verdict, row.text)


def _word(text: str) -> str:
    """A word of the Corefile as it may stand in a line of ours."""
    return text if text.isprintable() and len(text) <= _LONGEST_WORD else shown(text)
