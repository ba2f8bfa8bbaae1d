"""Parser of zone files (RFC 1035 section 5, RFC 2308 section 4), record by record.

`record_text` parses the single record. dnslib's zone parser is not used: it takes a missing TTL as 0, finds a TTL only
before the class, and gives no line numbers for errors.
"""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from topodns.dns.message import MAX_TTL, RRset
from topodns.dns.name import BadName, Name, name_text, parse_name, wire_labels
from topodns.dns.record_text import UnknownType, parse_record
from topodns.dns.rrtype import QTYPES, RRClass, RRType, parse_qclass
from topodns.dns.text_fields import BadRecord, is_ttl, parse_ttl, wrong
from topodns.files.text import BadText, foreign_octet

MAX_ENTRY: Final = 1 << 16  # characters with comments, as many as a record's data has octets (RFC 1035 section 3.2.1)
MAX_WORDS: Final = 2048  # words and quotes of an entry, 2 us each; TXT data of 65,535 octets can do with 771
MAX_DEPTH: Final = 7  # of files that include others, as in CoreDNS
STEP: Final = 256  # characters, about 0.2 ms if each is a line

_PIECE: Final = re.compile(
    r"""
      (?P<text> (?: \\[^\n] | [^"();\n\\]++ | "(?: \\[^\n] | [^"\\] )*" )+ )
    | (?P<comment> ;[^\n]* )
    | (?P<newline> \n )
    | (?P<parenthesis> [()] )
    """,
    re.VERBOSE,
)
_WORD: Final = re.compile(r"(?:\\.|\S)+")
_LONGEST_COMPARED: Final = 20  # characters
_LIKE: Final = 0.7  # difflib's ratio from which on a word may be shown
_EXPECTED: Final = {
    "$ORIGIN": "one name",
    "$TTL": "one time",
    "$INCLUDE": "a file and perhaps a name",
    "$GENERATE": "START-STOP[/STEP] and a record",
}


class BadZone(BadText):
    """Text that is not a zone, or a zone that cannot be served.

    `line` is 0 for an error in no single line; `file` is "" for the zone's own file, else one that it includes.
    """

    def __init__(self, problem: str, line: int = 0, file: str = "") -> None:
        place = f"{file}:{line}: " if file and line else f"{file}: " if file else f"line {line}: " if line else ""
        super().__init__(f"{place}{problem}")
        self.problem = problem
        self.line = line
        self.file = file


class ZoneRecord(NamedTuple):
    """One record, with an explicit owner, and the place of its entry: `line` and `file` are those of `BadZone`."""

    rrset: RRset
    line: int
    file: str

    def error(self, problem: str) -> BadZone:
        return BadZone(problem, self.line, self.file)


Include = Callable[[str, str], tuple[str, str]]
"""Reader of included files: (file that includes, "" for the zone's own; its word for the other) -> (path, text).

Raises BadText.
"""


def _no_files(_: str, name: str) -> tuple[str, str]:
    raise BadText(f"found $INCLUDE {name!r}, but no files are read here")


def parse_zone(text: str, origin: Name, include: Include = _no_files) -> Iterator[ZoneRecord | None]:
    """Yield each record of the text, in order. Raises BadZone during iteration.

    One step parses an entry of at most MAX_ENTRY characters, or reads on in the text until STEP characters are passed;
    a step without a record yields None.

    Names are relative to `origin` until an $ORIGIN. The TTL of a record without one is that of $TTL, else the last one
    written, else the SOA's MINIMUM. Only class IN. $INCLUDE and $GENERATE are CoreDNS's; a generated record has the TTL
    of $TTL, as in BIND.
    """
    return _Reader(origin, include).read(text, "")


def _entries(text: str) -> Iterator[tuple[int, str]]:
    """(number of its first line, entry) of each entry that is not empty; (line, "") about every STEP characters.

    Lines within parentheses are joined; comments and parentheses are removed. An entry that begins with a blank has the
    owner of the previous record. Raises BadZone, also for octets that are no UTF-8 outside of comments.
    """
    at, line, depth = 0, 1, 0
    start, begins, since = 0, 1, 0  # of the entry: offset and line; offset of the last step
    parts: list[str] = []
    while at < len(text):
        match = _piece(text, at, start, line, begins)
        at = match.end()
        if match["text"] and (octet := foreign_octet(match["text"])):
            raise BadZone(octet.problem, line)
        parts.append(match["text"] or (" " if match["parenthesis"] or (match["newline"] and depth) else ""))
        if match["parenthesis"]:
            depth += 1 if match[0] == "(" else -1
            if depth < 0:
                raise BadZone("parentheses that do not match", line)
        line += match[0].count("\n")
        if match["newline"] and not depth:
            yield from _entry(begins, parts)
            parts, start, begins = [], at, line
        if at - since >= STEP:
            since = at
            yield line, ""
    if depth:
        raise BadZone("a parenthesis that is never closed", begins)
    yield from _entry(begins, parts)


def _piece(text: str, at: int, start: int, line: int, begins: int) -> re.Match[str]:
    """The match of _PIECE at offset `at` in line `line`; its entry begins at offset `start` in line `begins`.

    Raises BadZone if no piece begins there, or if the entry is too long.
    """
    end = start + MAX_ENTRY
    match = _PIECE.match(text, at, end + 1)
    if match is not None and match.end() <= end:
        return match
    if match is not None or (end < len(text) and text.find("\n", at, end) < 0):
        raise BadZone(f"an entry of more than {MAX_ENTRY} characters", begins)
    raise BadZone("a quote or a backslash without what belongs to it", line)


def _entry(line: int, parts: list[str]) -> Iterator[tuple[int, str]]:
    entry = "".join(parts).rstrip()
    if len(entry.split()) + entry.count('"') > MAX_WORDS:
        raise BadZone(f"an entry of more than {MAX_WORDS} words and quotes", line)
    if entry:
        yield line, entry


class _Reader:
    """Parser of entries with the state that earlier ones leave: origin, owner and TTL."""

    def __init__(self, origin: Name, include: Include) -> None:
        self._origin = origin
        self._include = include
        self._depth = 0  # of $INCLUDE
        self._owner: str | None = None  # of the last record, absolute
        self._ttl: int | None = None
        self._ttl_is_fixed = False  # by $TTL
        self._minimum: int | None = None

    def read(self, text: str, file: str) -> Iterator[ZoneRecord | None]:
        """The records of a file, in steps as in `parse_zone`. Raises BadZone."""
        try:
            for line, entry in _entries(text):
                yield from self._read_entry(entry, line, file)
        except BadZone as problem:
            raise problem if problem.file else BadZone(problem.problem, problem.line, file) from None

    def _read_entry(self, entry: str, line: int, file: str) -> Iterator[ZoneRecord | None]:
        try:
            yield from self._read_line(entry, line, file)
        except BadZone:
            raise
        except UnknownType as problem:
            raise BadZone(f"found {_shown(problem.word, QTYPES)}, {problem.EXPECTED}", line) from None
        except (BadRecord, BadName, BadText) as problem:
            raise BadZone(str(problem), line) from None

    def _read_line(self, entry: str, line: int, file: str) -> Iterator[ZoneRecord | None]:
        """The records of an entry, None for one without. Raises BadRecord, BadName or BadText."""
        if not entry.startswith("$"):
            yield ZoneRecord(self._read_record(entry), line, file) if entry else None
            return
        directive, *args = _WORD.findall(entry)
        match directive.upper(), args:
            case "$INCLUDE", [name]:
                yield from self._read_included(name.strip('"'), self._origin, file)
            case "$INCLUDE", [name, origin]:
                yield from self._read_included(name.strip('"'), self._absolute(origin), file)
            case "$GENERATE", [_, *_]:
                for each in generated(entry[len("$GENERATE") :], MAX_ENTRY):
                    yield ZoneRecord(self._read_record(each), line, file)
            case _:
                self._obey(directive.upper(), *args)
                yield None

    def _read_included(self, name: str, origin: Name, file: str) -> Iterator[ZoneRecord | None]:
        """The records of another file, after which origin, owner and TTL are as before (RFC 1035 section 5.1)."""
        if self._depth == MAX_DEPTH:
            raise BadRecord(f"found $INCLUDE in files that are included, more than {MAX_DEPTH} deep")
        path, text = self._include(file, name)
        before = self._origin, self._owner, self._ttl, self._ttl_is_fixed
        self._origin, self._depth = origin, self._depth + 1
        yield from self.read(text, path)
        self._origin, self._owner, self._ttl, self._ttl_is_fixed = before
        self._depth -= 1

    def _read_record(self, entry: str) -> RRset:
        owner, rest = self._split(entry)
        record = self._record(owner, rest)
        self._owner = name_text(wire_labels(record.owner))
        if record.rclass != RRClass.IN:
            raise BadRecord(f"a record of class {record.rclass}, expected IN")
        return record

    def _split(self, entry: str) -> tuple[str, str]:
        if not entry[0].isspace():
            match = _WORD.match(entry)
            assert match is not None
            if match.end() == len(entry):
                raise BadRecord(f"found {_shown(entry)}, expected an owner, a type and its data")
            return match[0], entry[match.end() :]
        if self._owner is None:
            raise BadRecord("a record without a name, and none above to share")
        return self._owner, entry

    def _record(self, owner: str, rest: str) -> RRset:
        if _has_ttl(rest):
            record = parse_record(f"{owner} {rest}", self._origin)
            if not self._ttl_is_fixed:
                self._ttl = record.ttl
            return self._noted(record)
        ttl = self._ttl if self._ttl is not None else self._minimum
        if ttl is not None:
            return self._noted(parse_record(f"{owner} {ttl} {rest}", self._origin))
        record = self._noted(parse_record(f"{owner} {rest}", self._origin))
        if self._minimum is None:
            raise BadRecord("a record without a TTL, and neither a $TTL nor a TTL above it")
        return record._replace(ttl=self._minimum)

    def _noted(self, record: RRset) -> RRset:
        if record.rtype == RRType.SOA:
            self._minimum = min(int.from_bytes(record.rdatas[0][-4:], "big"), MAX_TTL)
        return record

    def _obey(self, directive: str, *args: str) -> None:
        match directive, args:
            case "$ORIGIN", [name]:
                self._origin = self._absolute(name)
            case "$TTL", [ttl] if is_ttl(ttl):
                self._ttl, self._ttl_is_fixed = parse_ttl(ttl), True
            case (("$ORIGIN" | "$TTL" | "$INCLUDE" | "$GENERATE"), _):
                raise BadRecord(f"{directive} with {' '.join(args)[:80]!r}, expected {_EXPECTED[directive]}")
            case _:
                raise BadRecord(
                    f"found {_shown(directive, _EXPECTED)}, expected a record or one of {', '.join(_EXPECTED)}"
                )

    def _absolute(self, text: str) -> Name:
        if text == "@":
            return self._origin
        name = parse_name(text)
        return name if text.endswith(".") else parse_name(name_text((*name, *self._origin)))


def _shown(word: str, known: Collection[str] = ()) -> str:
    """A word for a message, only its length unless it is like a known one: the file may be no zone but a password."""
    from difflib import get_close_matches  # here: only errors need it

    near = get_close_matches(word[:_LONGEST_COMPARED], known, n=1, cutoff=_LIKE)
    return repr(word) if near and len(word) <= _LONGEST_COMPARED else f"a word of {len(word)} characters"


def _has_ttl(rest: str) -> bool:
    """Whether `rest`, an entry without its owner, has a TTL before its type."""
    for match in _WORD.finditer(rest):
        if is_ttl(match[0]):
            return True
        if parse_qclass(match[0]) is None:
            return False
    return False


MAX_LINES: Final = 1 << 16  # as in CoreDNS
_MOST: Final = (1 << 31) - 1
_MAX_WIDTH: Final = 255  # as in CoreDNS

_RANGE: Final = re.compile(r"([0-9]{1,10})-([0-9]{1,10})(?:/([0-9]{1,10}))?")
_NUMBER: Final = re.compile(r"\\\$|\$\$|\$(?:\{([^}]*)\})?")
_MODIFIER: Final = re.compile(r"(-?[0-9]{1,10})(?:,([0-9]{1,3})(?:,([doxXnN]))?)?")
_NIBBLES: Final = {"n": "x", "N": "X"}  # BASE -> that of its digits


def generated(text: str, most: int) -> Iterator[str]:
    """The lines of `START-STOP[/STEP] LINE`, in which `$` and `${OFFSET[,WIDTH[,BASE]]}` are replaced by the number.

    These are the records of a $GENERATE line, BIND's directive, as CoreDNS reads it; no RFC has it.
    BASE is d, o, x or X, or, beyond CoreDNS, n or N (`_nibbles`); `\\$` and `$$` are a `$`.

    Raises BadRecord, also for a line of over `most` characters.
    """
    words = text.split(None, 1)
    if len(words) < 2:
        raise wrong(text.strip(), "START-STOP[/STEP] and a record")
    parts = _parts(words[1])
    for number in _numbers(words[0]):
        found = "".join(part if isinstance(part, str) else part.of(number) for part in parts)
        if len(found) > most:
            raise BadRecord(f"found a generated line of {len(found)} characters, expected at most {most}")
        yield found


class _Modified(NamedTuple):
    """The place of a number: what is added to it, and its format."""

    offset: int
    width: int
    base: str

    def of(self, number: int) -> str:
        found = number + self.offset
        if not 0 <= found <= _MOST:
            raise BadRecord(f"found the number {found}, expected 0 to {_MOST}")
        if self.base in _NIBBLES:
            return _nibbles(format(found, _NIBBLES[self.base]), self.width)
        return format(found, f"0{self.width or 1}{self.base}")


def _nibbles(digits: str, width: int) -> str:
    """Hexadecimal digits as the labels of a reverse name: the last one first, filled up with zeros.

    As in BIND `width` counts digits and dots, so that an even one above theirs ends in a dot.
    """
    return ".".join(digits[::-1].ljust((width + 1) // 2, "0")).ljust(width, ".")


def _parts(line: str) -> list[str | _Modified]:
    """Literal text, and the places of numbers. Raises BadRecord."""
    parts: list[str | _Modified] = []
    at = 0
    for match in _NUMBER.finditer(line):
        parts.append(line[at : match.start()])
        parts.append("$" if match[0] in ("\\$", "$$") else _modified(match[1]))
        at = match.end()
    return [*parts, line[at:]]


def _modified(text: str | None) -> _Modified:
    match = _MODIFIER.fullmatch(text if text is not None else "0")
    if match is None or int(match[2] or 0) > _MAX_WIDTH:
        raise wrong(f"${{{text}}}", "${OFFSET[,WIDTH[,BASE]]}, BASE one of d, o, x, X, n, N")
    return _Modified(int(match[1]), int(match[2] or 0), match[3] or "d")


def _numbers(text: str) -> range:
    match = _RANGE.fullmatch(text)
    if match is None or int(match[3] or 1) == 0:
        raise wrong(text, "START-STOP or START-STOP/STEP")
    numbers = range(int(match[1]), int(match[2]) + 1, int(match[3] or 1))
    if not 1 <= len(numbers) <= MAX_LINES or numbers[-1] > _MOST:
        raise wrong(text, f"1 to {MAX_LINES} numbers, none above {_MOST}")
    return numbers
