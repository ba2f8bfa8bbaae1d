"""Regular expressions in Corefiles: Go's syntax, linear-time matching. The only importer of google-re2."""

from typing import Protocol


class BadPattern(ValueError):
    """Text that is no regular expression in RE2 syntax (the message is RE2's), or longer than MAX_PATTERN."""


class Match(Protocol):
    def group(self, index: int | str = 0, /) -> str | None: ...

    def groups(self) -> tuple[str | None, ...]: ...

    def groupdict(self) -> dict[str, str]: ...

    def start(self) -> int: ...

    def end(self) -> int: ...


class Pattern(Protocol):
    @property
    def pattern(self) -> str: ...

    @property
    def groups(self) -> int:
        """The number of capturing groups."""

    def search(self, text: str, /) -> Match | None: ...

    def fullmatch(self, text: str, /) -> Match | None: ...


MAX_PATTERN = 10_000  # characters, as in CoreDNS: memory grows with the length


def compile_pattern(text: str) -> Pattern:
    """The compiled pattern. As in Go's regexp, `search` matches anywhere unless the text has anchors.

    Raises BadPattern.
    """
    import re2  # type: ignore[import-untyped]  # here, because it takes 3 MB that most Corefiles do not need

    if len(text) > MAX_PATTERN:
        raise BadPattern(f"{len(text)} characters, expected at most {MAX_PATTERN}")
    options = re2.Options()
    options.log_errors = False
    try:
        pattern: Pattern = re2.compile(text, options)
    except re2.error as problem:
        detail = problem.args[0]
        raise BadPattern(detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)) from None
    return pattern
