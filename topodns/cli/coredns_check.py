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
_GOOD: Final = frozenset({Verdict.SAME, Verdict.DIFFERS, Verdict.WARNING})
_SUMMED_UP: Final = {verdict: verdict.value for verdict in Verdict} | {
    Verdict.DIFFERS: "different",
    Verdict.WARNING: "with a warning",
}
_LONGEST_WORD: Final = 80  # characters
_BODY_IS_ONE_RULE: Final = frozenset({"rewrite"})  # whose lines are no options
_ARGUMENTS_CHOOSE_OPTIONS: Final = frozenset({"loadbalance"})
_GOOD_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "bind": ("127.0.0.1",),
    "file": ("file",),
    "forward": (".", "192.0.2.53"),
    "template": ("IN", "A"),
    "view": ("view",),
}
"""What stands in for arguments that are refused, so that options can be looked at; () for all others."""

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
        return Migration(file, (*importer.findings(), _refusal(problem)))
    examined = (finding for block in blocks for finding in _block(block, os.path.dirname(file), default_port))
    findings = (*importer.findings(), *examined)
    if Migration(file, findings).possible:
        findings += tuple(_between_blocks(text, file, default_port, environment))
    return Migration(file, findings)


class _LenientImporter(Importer):
    """Goes on without what cannot be imported."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__(environment)
        self._problems: list[ConfigError] = []

    def _import(self, at: Token, words: list[Token], within: tuple[str, ...]) -> Iterator[Token]:
        try:
            yield from super()._import(at, words, within)
        except ConfigError as problem:
            self._problems.append(problem)

    def findings(self) -> Iterator[Finding]:
        """About imports that brought nothing."""
        yield from map(_refusal, self._problems)
        for pattern in self.unmatched:
            text = f"no file matches {_word(pattern.text)}, so that what it is for was not looked at"
            yield Finding(pattern.file, pattern.line, "import", Verdict.WARNING, text)


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
        problems, complete = _problems(directive, context)
        yield from _known(directive, row, {**problems, (directive.file, directive.line): again}, complete)
    else:
        yield from _known(directive, row, *_problems(directive, context))


def _stranger(name: str) -> str:
    """What to do about a directive that CoreDNS 1.14.7 does not have."""
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    near = nearest(name, ROWS)
    guess = f"; did you mean '{near}'?" if near else "; take it out, or `forward` its names to a server that has it"
    return f"CoreDNS itself has no such directive, so it is an external plugin or a slip{guess}"


def _problems(directive: Directive, context: Context) -> tuple[dict[Place, str], bool]:
    """What is wrong with each line of a directive, and whether every option was looked at.

    After each fault the directive is read again without what is at fault, be that an option or the arguments.
    """
    problems: dict[Place, str] = {}
    replaced = directive.name in _ARGUMENTS_CHOOSE_OPTIONS  # whether other arguments were tried, or must not be
    while True:
        try:
            DIRECTIVES[directive.name].parse(directive, context)
        except ConfigError as problem:
            place = (problem.file, problem.line)
            problems.setdefault(place, problem.problem)
            rest = tuple(option for option in directive.body if (option.file, option.line) != place)
            if not rest:
                return problems, True
            if len(rest) < len(directive.body):
                directive = replace(directive, body=rest)
            elif not replaced:
                directive, replaced = replace(directive, args=_GOOD_ARGUMENTS.get(directive.name, ())), True
            else:
                return problems, False
        else:
            return problems, True


def _known(directive: Directive, row: Row, problems: Mapping[Place, str], complete: bool) -> Iterator[Finding]:
    options = _options(directive)
    elsewhere = problems.keys() - {(option.file, option.line) for option in options}
    for file, line in sorted(elsewhere):
        yield Finding(file, line, _word(directive.name), Verdict.REFUSED, problems[file, line])
    if not elsewhere:
        yield _finding(directive, row)
    unnamed = Row(Verdict.SAME) if complete else _UNCHECKED
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
