"""Names of Nodes and Namespaces that do not exist, as EndpointSlices and the Corefile may have them, and the known name
that may be meant.
"""

import re
from collections.abc import Callable, Collection, Generator, Iterable
from difflib import SequenceMatcher
from typing import Final

MAX_SIMILAR: Final = 64  # unknown names for which a similar one is looked for, until `keep_only` forgets some
_LONGEST_COMPARED: Final = 63  # characters; difflib is quadratic
_LEAST_SIMILAR: Final = 0.6  # difflib's ratio of similar names, as of `get_close_matches`
_COMPARED: Final = 20  # names compared in one step
_LOOKED_AT: Final = 200  # names whose digits are compared in one step
_DIGITS: Final = re.compile("[0-9]+")


class UnknownNames:
    """The known name that is similar to each unknown one of one kind: it is looked for once, and kept."""

    def __init__(self, known: Callable[[], Collection[str]]) -> None:
        self._known = known
        self._similar: dict[str, str] = {}

    def clause_steps(self, name: str) -> Generator[None, None, str]:
        """`there is no Node NAME (OTHER?)`, in steps; without OTHER if none is similar, or MAX_SIMILAR are kept."""
        similar = yield from self.similar_steps(name)
        return f"there is no Node {name}" + (f" ({similar}?)" if similar else "")

    def similar_steps(self, name: str) -> Generator[None, None, str]:
        """The similar known name, in steps; "" if none is, or MAX_SIMILAR are kept.

        It has the same digits: numbered Nodes come and go.
        """
        if name not in self._similar and len(self._similar) < MAX_SIMILAR:
            self._similar[name] = yield from self._search_steps(name)
        return self._similar.get(name, "")

    def keep_only(self, names: Collection[str]) -> None:
        """Forget the similar names of all other names."""
        self._similar = {name: similar for name, similar in self._similar.items() if name in names}

    def _search_steps(self, name: str) -> Generator[None, None, str]:
        digits, candidates, lower = _DIGITS.findall(name), [], name.lower()  # as names of Nodes are
        for at, each in enumerate(self._known()):
            if each == lower:
                return each
            if _DIGITS.findall(each) == digits:
                candidates.append(each)
            if at % _LOOKED_AT == _LOOKED_AT - 1:
                yield
        return (yield from similar_steps(name, candidates))


def similar_steps(word: str, names: Iterable[str]) -> Generator[None, None, str]:
    """The name most similar to `word`, of several the last in order, "" if none is similar; in steps."""
    return max((yield from nearest_steps(word, names)), default="")


def nearest_steps(word: str, names: Iterable[str]) -> Generator[None, None, list[str]]:
    """The names most similar to `word`: several if these are equally similar; in steps of some 0.5 ms."""
    matcher, best = SequenceMatcher(b=word[:_LONGEST_COMPARED]), _LEAST_SIMILAR
    nearest: list[str] = []
    for at, name in enumerate(names, 1):
        matcher.set_seq1(name)
        # The first two are upper bounds of the third, and cheap.
        if matcher.real_quick_ratio() >= best and matcher.quick_ratio() >= best and matcher.ratio() >= best:
            if matcher.ratio() > best:
                nearest, best = [], matcher.ratio()
            nearest.append(name)
        if at % _COMPARED == 0:
            yield
    return nearest
