"""Counts calls: of Python functions and of C functions, by `sys.setprofile`.

A call is the unit of work that does not depend on the machine: two runs of the same code on the same tape make the same
calls. A generator or coroutine that goes on counts as a call, a class or a type that is called does not (only its
`__init__` in Python does). Calls of and from `bench.guard` itself are left out.
"""

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import topodns

_OWN: Final = str(Path(__file__).parent) + os.sep
_PACKAGE: Final = str(Path(topodns.__file__).parent) + os.sep


class Calls:
    """The calls counted so far: of Python functions by their code, of C functions by their name."""

    def __init__(self) -> None:
        self._counts: Counter[CodeType | str] = Counter()

    @property
    def total(self) -> int:
        return sum(self._counts.values())

    def count(self, action: Callable[[], object]) -> None:
        """Call `action` and count the calls that it makes, without garbage collections, whose time is not fixed."""
        gc.disable()
        sys.setprofile(self._note)
        try:
            action()
        finally:
            sys.setprofile(None)
            gc.enable()

    def by_function(self) -> list[tuple[str, int]]:
        """(function with its file, number of calls) pairs, the most called first."""
        named: Counter[str] = Counter()
        for function, number in self._counts.items():
            named[function if isinstance(function, str) else _described(function)] += number
        return sorted(named.items(), key=lambda pair: (-pair[1], pair[0]))

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if code.co_filename.startswith(_OWN):
            return
        if event == "call":
            self._counts[code] += 1
        elif event == "c_call":
            self._counts[argument.__qualname__] += 1


def _described(code: CodeType) -> str:
    path = code.co_filename
    place = path.removeprefix(_PACKAGE) if path.startswith(_PACKAGE) else Path(path).name
    return f"{place} {code.co_qualname}"
