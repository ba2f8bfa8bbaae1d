"""Sessions in our documents: ```console blocks as commands and their output, and dig's lines as facts."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import NamedTuple

from tests.support.dns_messages import Opt, Reply

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ENDED = re.compile(r" # status (\d+)$")
_STATUS = re.compile(r"status: (\w+)")
_FLAGS = re.compile(r"^;; flags: ([a-z ]+);", re.MULTILINE)
_EDE = re.compile(r"^; EDE: \d+ \([^)]*\): \((.*)\)$", re.MULTILINE)
_SERIAL = re.compile(r"(IN SOA \S+ \S+) \d+ ")


class Command(NamedTuple):
    """One command and the lines that the document says it prints.

    `printf TEXT | COMMAND` gives it TEXT to read, and a comment `# status 1` behind it says how it ends.
    """

    words: tuple[str, ...]
    output: str
    stdin: str = ""
    status: int = 0


def commands(document: str) -> Iterator[Command]:
    """The text behind each `$ ` of the document's console blocks, up to the next."""
    for block in _BLOCK.findall(document):
        assert block.startswith("$ "), f"output without its command: {block.splitlines()[0]}"
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            yield _command(line, output)


def _command(line: str, output: str) -> Command:
    words, stdin = shlex.split(line, comments=True), ""
    if words[0] == "printf":
        (_, text, bar), words = words[:3], words[3:]
        assert bar == "|", f"one text and one command behind it: {line}"
        stdin = text.encode().decode("unicode_escape")
    ended = _ENDED.search(line)
    return Command(tuple(words), output, stdin, int(ended[1]) if ended else 0)


@dataclass
class Dig:
    """A dig command line: what it asks, and which sections it prints."""

    server: str = ""
    port: str = ""
    source: str = "127.0.0.1"
    name: str = ""
    qtype: str = "A"
    options: list[tuple[int, bytes]] = field(default_factory=list)
    shown: set[str] = field(default_factory=lambda: {"comments", "answer", "authority", "additional"})

    @property
    def question(self) -> str:
        return f"{self.name} {self.qtype}"

    @property
    def opt(self) -> Opt:
        """The OPT record that dig sends by default, without its cookie."""
        return Opt(1232, tuple(self.options))

    def facts(self, output: str) -> dict[str, object]:
        """The facts in dig's output, as far as it is the same each time."""
        records = [_steady(line) for line in output.splitlines() if line and not line.startswith(";")]
        facts: dict[str, object] = {"records": records}
        if "comments" in self.shown:
            status, flags, ede = _STATUS.search(output), _FLAGS.search(output), _EDE.search(output)
            facts["status"] = status and status[1]
            facts["flags"] = set(flags[1].split()) if flags else None
            facts["ede"] = ede[1] if ede else ""
        return facts

    def facts_of(self, reply: Reply) -> dict[str, object]:
        """The facts in dig's output for this reply."""
        sections = {"answer": reply.answer, "authority": reply.authority, "additional": reply.additional}
        records = [_steady(line) for name, lines in sections.items() if name in self.shown for line in lines]
        facts: dict[str, object] = {"records": records}
        if "comments" in self.shown:
            facts |= {"status": reply.rcode, "flags": reply.flag_names, "ede": reply.ede}
        return facts


def parse_dig(words: Sequence[str]) -> Dig:
    """The part of dig's command line that our documents use."""
    dig, rest = Dig(), iter(words)
    for word in rest:
        if word in ("-b", "-p"):
            setattr(dig, {"-b": "source", "-p": "port"}[word], next(rest))
        elif word == "-x":
            dig.name, dig.qtype = f"{ip_address(next(rest)).reverse_pointer}.", "PTR"
        elif word.startswith("@"):
            dig.server = word[1:]
        elif word.startswith("+"):
            _take_option(dig, word[1:])
        elif not dig.name:
            dig.name = word
        else:
            dig.qtype = word
    return dig


def _take_option(dig: Dig, option: str) -> None:
    name, _, value = option.partition("=")
    if name == "noall":
        dig.shown.clear()
    elif name == "ednsopt":
        code, _, data = value.partition(":")
        dig.options.append((int(code), bytes.fromhex(data)))
    else:
        assert name in ("comments", "answer", "authority", "additional"), f"+{option}: not known here"
        dig.shown.add(name)


def _steady(record: str) -> str:
    """One record with single blanks and without the serial of an SOA, which is the time of the last change."""
    return _SERIAL.sub(r"\1 SERIAL ", " ".join(record.split()))
