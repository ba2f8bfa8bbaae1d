"""`topodns check --from coredns`: the migration report of CoreDNS's Corefile, with a verdict on each line.

Errors are collected instead of raised, so that one run shows all of them.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from topodns.app.load import directive_errors, read_tokens, settings_from_text
from topodns.app.self_forwarding import refuse_self_forwarding
from topodns.corefile.errors import ConfigError, Problems, may_show_key, shown, unshown
from topodns.corefile.imports import Importer
from topodns.corefile.lexer import Token
from topodns.corefile.parser import CorefileBlock, Directive, parse_blocks
from topodns.corefile.zones import parse_keys, parse_origins
from topodns.dns.name import ROOT, is_below_any
from topodns.plugins.compatibility import (
    NAMES,
    OURS,
    TRANSPORTS,
    DirectiveVerdict,
    Effect,
    Row,
    differs,
    is_known,
    unknown_row,
)
from topodns.plugins.context import Context
from topodns.plugins.order import ORDER
from topodns.plugins.plugin import load

Place = tuple[str, int]
"""File and line."""

_UNCHECKED: Final = Row(DirectiveVerdict.UNCHECKED, "mend the directive first")
_WORD_OF_ITS_LINE: Final = "CoreDNS refuses it here, so put it on a line of its own before going back"
_GOOD: Final = frozenset({DirectiveVerdict.SAME, DirectiveVerdict.DIFFERS, DirectiveVerdict.WARNING})
_SUMMED_UP: Final = {verdict: verdict.value for verdict in DirectiveVerdict} | {
    DirectiveVerdict.DIFFERS: "different",
    DirectiveVerdict.WARNING: "with a warning",
}
_SAME: Final = "the same as in CoreDNS"
_HEADINGS: Final = {
    **dict.fromkeys(DirectiveVerdict, "prevents the swap"),
    DirectiveVerdict.WARNING: "not checked",
    DirectiveVerdict.SAME: _SAME,
}
_ORDER: Final = ("prevents the swap", "not checked", *(effect.value for effect in Effect), _SAME)
_NEVER_CACHED: Final = differs(Effect.NOTHING, "no effect: answers of `kubernetes` are never cached")
_LONGEST_WORD: Final = 80  # characters
_BODY_IS_ONE_RULE: Final = frozenset({"rewrite"})  # the lines of its body are no options


@dataclass(frozen=True, slots=True)
class DirectiveFinding:
    """The verdict on one directive, option or key. `text`: the difference, the alternative, or why it is refused."""

    file: str
    line: int
    subject: str
    verdict: DirectiveVerdict
    text: str = ""
    effect: Effect = Effect.NOTHING  # of a difference

    @property
    def heading(self) -> str:
        return self.effect.value if self.verdict is DirectiveVerdict.DIFFERS else _HEADINGS[self.verdict]


@dataclass(frozen=True, slots=True)
class Remark:
    """All findings with the same sentence. `subjects` and `places` are without repetitions."""

    verdict: DirectiveVerdict
    text: str
    subjects: tuple[str, ...]
    places: tuple[Place, ...]

    def __str__(self) -> str:
        verdict = "" if self.verdict in _GOOD else self.verdict.value
        parts = (", ".join(filter(None, self.subjects)), verdict, self.text)
        return f"{': '.join(filter(None, parts))} ({_places_text(self.places)})"

    def as_dict(self) -> Mapping[str, object]:
        places = [{"file": file, "line": line} for file, line in self.places]
        return {"verdict": self.verdict.value, "text": self.text, "subjects": [*self.subjects], "places": places}


def _places_text(places: Iterable[Place]) -> str:
    """The places as `FILE:LINE, LINE`, with the name of a file before its first line."""
    by_file: dict[str, list[int]] = {}
    for file, line in places:
        by_file.setdefault(file, []).append(line)
    return ", ".join(f"{file}:{', '.join(map(str, lines))}" if any(lines) else file for file, lines in by_file.items())


@dataclass(frozen=True, slots=True)
class Migration:
    """Findings about a Corefile, in this order: syntax and imports, closing braces, each block, between blocks."""

    file: str
    findings: tuple[DirectiveFinding, ...]

    @property
    def possible(self) -> bool:
        """Whether topodns can replace CoreDNS with this Corefile unchanged, if all files that it names are valid."""
        return all(finding.verdict in _GOOD for finding in self.findings)

    def remarks(self) -> Mapping[str, list[Remark]]:
        """The findings by sentence, each once, below headings that rank them: the gravest first."""
        by_heading: dict[str, list[Remark]] = {}
        for heading in _ORDER:
            by_sentence: dict[tuple[DirectiveVerdict, str], list[DirectiveFinding]] = {}
            for finding in self.findings:
                if finding.heading == heading:
                    by_sentence.setdefault((finding.verdict, finding.text), []).append(finding)
            if by_sentence:
                by_heading[heading] = [_remark(*said, found) for said, found in by_sentence.items()]
        return by_heading

    def report(self, readable: bool) -> str:
        """The remarks below their headings, and a summary line. `readable`: whether all files can be read."""
        numbers = Counter(finding.verdict for finding in self.findings)
        counted = ", ".join(
            f"{numbers[verdict]} {_SUMMED_UP[verdict]}" for verdict in DirectiveVerdict if numbers[verdict]
        )
        outcome = "the image can be swapped" if self.possible and readable else "not as it is"
        groups = ((f"{heading}:", *(f"  {remark}" for remark in said)) for heading, said in self.remarks().items())
        return "\n".join([*(line for lines in groups for line in lines), f"{self.file}: {outcome}: {counted}"])


def _remark(verdict: DirectiveVerdict, text: str, findings: Iterable[DirectiveFinding]) -> Remark:
    found = list(findings)
    subjects = tuple(dict.fromkeys(finding.subject for finding in found))
    return Remark(verdict, text, subjects, tuple(dict.fromkeys((finding.file, finding.line) for finding in found)))


def examine(text: str, file: str, default_port: int, environment: Mapping[str, str]) -> Migration:
    """The migration report of this Corefile. The arguments are those of `settings_from_text`; raises nothing."""
    problems = Problems()
    importer = Importer(environment, problems.note)
    tokens = read_tokens(importer, text, file, problems)
    blocks = parse_blocks(tokens, is_known, problems.note)
    examined = (finding for block in blocks for finding in _block(block, os.path.dirname(file), default_port))
    found = (*map(_refusal, problems), *_unmatched(importer), *filter(None, map(_brace, tokens)), *examined)
    findings = tuple(_explained(finding, importer) for finding in found)
    if Migration(file, findings).possible:
        findings += tuple(_between_blocks(text, file, default_port, environment))
    return Migration(file, findings)


def _brace(token: Token) -> DirectiveFinding | None:
    """The finding about a closing brace that CoreDNS takes for a word of its line."""
    if not token.closes or token.first:
        return None
    return DirectiveFinding(token.file, token.line, "closing brace", DirectiveVerdict.DIFFERS, _WORD_OF_ITS_LINE)


def _explained(finding: DirectiveFinding, importer: Importer) -> DirectiveFinding:
    """The finding, if it is a refusal with the unset variables of its line."""
    if finding.verdict is not DirectiveVerdict.REFUSED:
        return finding
    problem = importer.explained(ConfigError(finding.file, finding.line, finding.text))
    return replace(finding, text=problem.problem)


def _unmatched(importer: Importer) -> Iterator[DirectiveFinding]:
    """Findings about imports that match no file."""
    for pattern in importer.unmatched:
        text = f"no file matches {_word(pattern.text)}, so the directives that it is to import were not checked"
        yield DirectiveFinding(pattern.file, pattern.line, "import", DirectiveVerdict.WARNING, text)


def _refusal(problem: ConfigError, subject: str = "") -> DirectiveFinding:
    return DirectiveFinding(problem.file, problem.line, subject, DirectiveVerdict.REFUSED, problem.problem)


def _between_blocks(
    text: str, file: str, default_port: int, environment: Mapping[str, str]
) -> Iterator[DirectiveFinding]:
    """The problems between lines, such as two blocks for the same names, or a block that forwards to itself."""
    try:
        refuse_self_forwarding(settings_from_text(text, file, default_port, environment), ())
    except ConfigError as problem:
        yield from map(_refusal, problem.each)


def _block(block: CorefileBlock, directory: str, default_port: int) -> Iterator[DirectiveFinding]:
    origins = []
    for token in block.keys:
        try:
            origins += [key.origin for _, key in parse_keys((token,), default_port)]
        except ConfigError as problem:
            yield _bad_key(token, problem)
        else:
            yield DirectiveFinding(token.file, token.line, _key(token), DirectiveVerdict.SAME)
    context = Context(tuple(dict.fromkeys(origins)) or (ROOT,), directory)
    first: dict[str, Directive] = {}
    without_effect = set(_without_effect(block, context))
    for directive in block.directives:
        for finding in _directive(directive, first.get(directive.name), context):
            is_vain = (finding.file, finding.line) in without_effect and finding.verdict is DirectiveVerdict.SAME
            yield replace(finding, verdict=_NEVER_CACHED.verdict, text=_NEVER_CACHED.text) if is_vain else finding
        first.setdefault(directive.name, directive)


def _without_effect(block: CorefileBlock, context: Context) -> Iterator[Place]:
    """The places of the lines `disable` of `cache` whose zones are all of the block's `kubernetes`."""
    with suppress(ConfigError):
        of_cluster = [origin for each in _named(block, "kubernetes") for origin in context.origins_of(each)]
        for option in (option for cache in _named(block, "cache") for option in cache.body if option.name == "disable"):
            disabled = parse_origins(option, option.args[1:])
            if disabled and all(is_below_any(origin, of_cluster) for origin in disabled):
                yield option.file, option.line


def _named(block: CorefileBlock, name: str) -> Iterator[Directive]:
    return (directive for directive in block.directives if directive.name == name)


def _bad_key(token: Token, problem: ConfigError) -> DirectiveFinding:
    scheme, separator, _ = token.text.partition("://")
    if separator and (instead := TRANSPORTS.get(scheme)) is not None:
        return DirectiveFinding(token.file, token.line, _key(token), DirectiveVerdict.UNSUPPORTED, instead)
    return _refusal(problem, _key(token))


def _key(token: Token) -> str:
    hidden = token.imported and not is_known(token.text) and not may_show_key(token.text)
    return f"block {unshown(token.text) if hidden else _word(token.text)}"


def _directive(directive: Directive, earlier: Directive | None, context: Context) -> Iterator[DirectiveFinding]:
    row = load(directive.name).coredns if directive.name in ORDER else unknown_row(directive.name)
    if row.verdict is DirectiveVerdict.UNSUPPORTED:
        yield _finding(directive, row, _subject(directive))
        yield from _all_options(directive, Row(row.verdict))
    elif earlier is not None and not load(directive.name).adds_up:
        again = f"found again, first at {earlier.file}:{earlier.line}"
        problems, complete = _problems(directive, context)
        yield from _known(directive, row, {**problems, (directive.file, directive.line): again}, complete)
    else:
        yield from _known(directive, row, *_problems(directive, context))


def _problems(directive: Directive, context: Context) -> tuple[dict[Place, str], bool]:
    """The errors of a directive by place, and whether every option was checked."""
    try:
        load(directive.name).parse(directive, context)
    except ConfigError as problem:
        errors, complete = directive_errors(directive, problem, context)
        return {(each.file, each.line): each.problem for each in reversed(errors)}, complete
    return {}, True


def _known(directive: Directive, row: Row, problems: Mapping[Place, str], complete: bool) -> Iterator[DirectiveFinding]:
    options = _options(directive)
    elsewhere = problems.keys() - {(option.file, option.line) for option in options}
    for file, line in sorted(elsewhere):
        yield DirectiveFinding(file, line, _word(directive.name), DirectiveVerdict.REFUSED, problems[file, line])
    if not elsewhere:
        yield _finding(directive, row, _word(directive.name))
    # CoreDNS has no option of a directive that it does not have.
    unnamed = Row(row.verdict if row.text == OURS else DirectiveVerdict.SAME) if complete else _UNCHECKED
    for option in options:
        option_row = row.options.get(option.name, unnamed)
        problem = problems.get((option.file, option.line))
        if problem is not None and option_row.verdict is not DirectiveVerdict.UNSUPPORTED:
            option_row = Row(DirectiveVerdict.REFUSED, problem)
        yield _finding(option, option_row, f"{directive.name} {_option_subject(option, option_row)}")


def _all_options(directive: Directive, row: Row) -> Iterator[DirectiveFinding]:
    owner = _subject(directive)
    return (_finding(option, row, f"{owner} {_subject(option)}") for option in _options(directive))


def _options(directive: Directive) -> Iterable[Directive]:
    return () if directive.name in _BODY_IS_ONE_RULE else directive.body


def _finding(line: Directive, row: Row, subject: str) -> DirectiveFinding:
    return DirectiveFinding(line.file, line.line, subject, row.verdict, row.text, row.effect)


def _subject(line: Directive) -> str:
    """An unknown name as a subject; in an imported file, which may be no Corefile, its length, unless it is a slip."""
    return unshown(line.name) if line.hides_name(NAMES) else _word(line.name)


def _option_subject(option: Directive, row: Row) -> str:
    """The name of a known directive's option, which is unknown if nothing was looked at, or if its refusal hides it."""
    if row is _UNCHECKED:
        return _subject(option)
    # The text is that of the first problem of a line, which may have other options.
    hidden = ", not shown)" in row.text and option.hides_name(NAMES)
    return unshown(option.name) if hidden else _word(option.name)


def _word(text: str) -> str:
    """A word of the Corefile for a line of output: unprintable or long ones are quoted and shortened."""
    return text if text.isprintable() and len(text) <= _LONGEST_WORD else shown(text)
