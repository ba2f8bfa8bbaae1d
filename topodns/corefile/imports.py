"""Snippets and `import`: expands the tokens of a Corefile.

`(NAME) { ... }` outside all blocks defines a snippet. `import NAME ARG...` is replaced by that snippet's tokens, and
`import PATTERN ARG...` by those of the matching files, relative to the importing file. Inside them `{args[0]}` or
`{args.0}` is the first ARG: arguments are Caddy's, CoreDNS has none.
"""

import glob
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from topodns.corefile.errors import ConfigError, Note, nearest, raise_it, shown, shown_name, shown_word
from topodns.corefile.files import read_text, reason
from topodns.corefile.lexer import Token, expand_environment, tokenize, unset_variables

MAX_IMPORTS: Final = 10_000  # as in CoreDNS; a pattern counts once
MAX_DEPTH: Final = 50  # of imports inside imports
_MAX_TOKENS: Final = 1_000_000  # after expansion: nested imports multiply

_VARIABLE: Final = re.compile("[A-Z][A-Z0-9_]*")  # as those in files that programs write
_ARGUMENT: Final = re.compile(r"\{args(?:\[([0-9]{1,4})\]|\.([0-9]{1,4}))\}")


class Importer:
    """Expands one Corefile. Once the tokens of `read` have been taken: `files` has the paths read, in order, without
    duplicates, `digest` is that of their texts, `unmatched` has the patterns that match no file, and `unset` the
    environment variables that have no value.

    `note` takes the errors behind which the reading goes on: imports that fail, which give no tokens, arguments that an
    import does not have, and octets that are no UTF-8.
    """

    def __init__(self, environment: Mapping[str, str], note: Note = raise_it) -> None:
        self._environment = environment
        self._note = note
        self._snippets: dict[str, tuple[Token, ...]] = {}
        self._defined: dict[str, Token] = {}
        self._imports = 0
        self._tokens = 0
        self._braces = 0  # nesting depth so far
        self._hash = hashlib.sha512()
        self.files: list[str] = []
        self.unmatched: list[Token] = []  # patterns that no file matches
        self.unset: dict[tuple[str, int], list[str]] = {}  # names of variables, by file and line

    @property
    def digest(self) -> str:
        """SHA-512, in hex, of the texts of the files read so far, in order, without byte order marks.

        A file imported twice counts twice.
        """
        return self._hash.hexdigest()

    def read(self, text: str, file: str) -> Iterator[Token]:
        """The tokens of `text` with imports, arguments and environment variables expanded. Raises ConfigError."""
        return self._expand(self._tokenize(text, file), (), (os.path.realpath(file),))

    def explained(self, problem: ConfigError) -> ConfigError:
        """The problem, and the unset variables of its line: the empty text in their place may be the cause."""
        names = self.unset.get((problem.file, problem.line))
        if not names:
            return problem
        text = f"{problem.problem}; not set in the environment: {', '.join(map(shown_word, names))}"
        return ConfigError(problem.file, problem.line, text)

    def _tokenize(self, text: str, file: str, imported: bool = False) -> Iterator[Token]:
        self._hash.update(text.encode("utf-8", "surrogatepass"))
        if file not in self.files:
            self.files.append(file)
        return tokenize(text, file, imported, self._note)

    def _expand(self, tokens: Iterable[Token], arguments: tuple[str, ...], within: tuple[str, ...]) -> Iterator[Token]:
        """The tokens with imports, arguments and environment variables expanded; snippets are stored and left out.

        `within`: the snippets and files being imported, outermost first.
        """
        rest = _Lookahead(tokens)
        while (token := rest.take()) is not None:
            token = self._fill_in(token, arguments)
            if token.first and token.text == "import" and not token.brace:
                words = [self._fill_in(word, arguments) for word in rest.take_line()]
                yield from self._import(token, words, within)
            elif self._starts_snippet(token):
                self._define(token, rest)
            else:
                self._count(token)
                yield token

    def _fill_in(self, token: Token, arguments: tuple[str, ...]) -> Token:
        text = expand_environment(token.text, self._environment)
        if text != token.text:
            self._note_unset(token)
        if arguments or "{args" in text:
            text = _ARGUMENT.sub(lambda match: self._argument(match, arguments, token), text)
        return token if text == token.text else replace(token, text=text)

    def _argument(self, match: re.Match[str], arguments: tuple[str, ...], token: Token) -> str:
        index = int(match[1] or match[2])
        if index < len(arguments):
            return arguments[index]
        given = f"'{' '.join(arguments)}'" if arguments else "none"
        self._note(token.error(f"found {match[0]}, but the import's arguments are {given}"))
        return match[0]

    def _note_unset(self, token: Token) -> None:
        names = unset_variables(token.text, self._environment)
        if token.imported:  # the file may be no Corefile, and what stands in braces a part of a password
            names = [name for name in names if _VARIABLE.fullmatch(name)]
        known = self.unset.setdefault((token.file, token.line), []) if names else []
        known += [name for name in dict.fromkeys(names) if name not in known]

    def _count(self, token: Token) -> None:
        self._tokens += 1
        if self._tokens > _MAX_TOKENS:
            raise token.error(f"found more than {_MAX_TOKENS} words with all imports")
        if token.brace:
            self._braces += 1 if token.opens else -1

    def _starts_snippet(self, token: Token) -> bool:
        return token.first and self._braces == 0 and token.text[:1] == "(" and token.text[-1:] == ")"

    def _define(self, token: Token, rest: "_Lookahead") -> None:
        name = token.text[1:-1]
        if not name:
            raise token.error("found a snippet without a name, expected one as in '(NAME) {'")
        if (earlier := self._defined.get(name)) is not None:
            raise token.error(
                f"found the snippet {shown_name(name, token.imported)} again, first at {earlier.file}:{earlier.line}"
            )
        brace = rest.take()
        if brace is None or not brace.opens:
            raise token.error(f"expected '{{' after the snippet's name {shown_name(token.text, token.imported)}")
        self._defined[name] = token
        self._snippets[name] = tuple(rest.take_body(token))

    def _import(self, at: Token, words: list[Token], within: tuple[str, ...]) -> Iterator[Token]:
        """The tokens that an import stands for. Raises ConfigError for one that is over a limit."""
        self._imports += 1
        if self._imports > MAX_IMPORTS:
            raise at.error(f"found more than {MAX_IMPORTS} imports")
        if len(within) > MAX_DEPTH:
            raise at.error(f"found imports inside imports, more than {MAX_DEPTH} deep")
        if not words or not words[0].text:
            self._note(at.error("'import' has no argument, expected a snippet, a file or a pattern"))
            return
        target, arguments = words[0].text, tuple(word.text for word in words[1:])
        identity = f"({target})"
        if target not in self._snippets:
            for path in self._matches(words[0]):
                yield from self._import_file(at, path, arguments, within)
        elif self._is_new(at, target, identity, within):
            yield from self._expand(self._snippets[target], arguments, (*within, identity))

    def _is_new(self, at: Token, target: str, identity: str, within: tuple[str, ...]) -> bool:
        """Whether an import is none of itself; notes the error of one that is."""
        if identity in within:
            self._note(at.error(f"found an import of {shown(target)} inside itself"))
        return identity not in within

    def _matches(self, pattern: Token) -> list[str]:
        """The files that match a pattern, sorted; without a match none, and the pattern is added to `unmatched`.

        A name without wildcards gives one path, also of a file that does not exist.
        """
        directory = os.path.dirname(pattern.file)
        if not glob.has_magic(pattern.text):
            return [os.path.join(directory, pattern.text)]
        try:
            found = _matching(os.path.join(glob.escape(directory), pattern.text))
        except (OSError, ValueError, re.error) as problem:
            self._note(pattern.error(f"cannot look for files that match {shown(pattern.text)}: {problem}"))
            return []
        if not found:
            self.unmatched.append(pattern)
        return found

    def _import_file(
        self, at: Token, path: str, arguments: tuple[str, ...], within: tuple[str, ...]
    ) -> Iterator[Token]:
        try:
            text = read_text(path)
        except FileNotFoundError:
            self._note(at.error(f"cannot import {shown(path)}: no such file{self._snippet_hint(path)}"))
            return
        except (OSError, ValueError) as problem:
            self._note(at.error(f"cannot import {shown(path)}: {reason(problem)}"))
            return
        identity = os.path.realpath(path)
        if self._is_new(at, path, identity, within):
            yield from self._expand(self._tokenize(text, path, imported=True), arguments, (*within, identity))

    def _snippet_hint(self, path: str) -> str:
        near = nearest(os.path.basename(path), self._snippets) if self._snippets else None
        return f", did you mean the snippet '{near}'?" if near else " and no snippet of this name above"


def _matching(pattern: str) -> list[str]:
    """The paths that match, sorted. As in Go, wildcards match files whose names begin with a dot.

    Directories with such names, which volumes of ConfigMaps have, are passed over, also on the way to files: their
    files would be read twice. CoreDNS refuses them. Raises OSError, ValueError or re.error.
    """
    folder, last = os.path.split(pattern)
    folders = glob.glob(folder) if folder else [folder]
    names = ((each, name) for each in folders for name in glob.glob(last, root_dir=each, include_hidden=True))
    found = ((os.path.join(each, name), name) for each, name in names)
    return sorted(path for path, name in found if not (name.startswith(".") and os.path.isdir(path)))


class _Lookahead:
    """A token stream with one token of lookahead; taken by token, by line, or by body."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._tokens = iter(tokens)
        self._next = next(self._tokens, None)

    def take(self) -> Token | None:
        token = self._next
        self._next = next(self._tokens, None)
        return token

    def take_line(self) -> Iterator[Token]:
        """Take the words up to the end of the line, or up to a brace, which is not taken."""
        while self._next is not None and not self._next.first and not self._next.brace:
            yield self._next
            self.take()

    def take_body(self, opening: Token) -> Iterator[Token]:
        """Take the tokens of a body whose `{` has just been taken; its `}` is also taken, but not yielded.

        Raises ConfigError, at the token `opening`, if there is no such `}`.
        """
        depth = 1
        while (token := self.take()) is not None:
            depth += token.opens - token.closes
            if depth == 0:
                return
            yield token
        raise opening.error(
            f"expected '}}' to end {shown_name(opening.text, opening.imported)}, found the end of the file"
        )
