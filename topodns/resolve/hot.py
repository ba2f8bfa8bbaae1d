"""The dictionary of ready-made answers: every byte after the id in, every byte after the id out.

Two levels: answers that are the same for everyone, and answers for the node that a client is on. A key holds flags,
question and OPT whole, so a hit cannot be wrong about RD, CD, class, size or spelling. What the cluster learns is
visible at once: each entry is filed under the facts it rests on, and `forget` takes those entries out.
"""

from collections.abc import Callable, Hashable, Iterable
from random import Random
from typing import Final

from topodns.cluster.model import EVERYTHING, Fact
from topodns.dns.message import Query, RRType
from topodns.resolve.step import Resolution, Scope
from topodns.resolve.tally import Cell

MAX_STORED: Final = 32_768  # entries, since the table last started over
MAX_OCTETS: Final = 16 << 20  # of keys and answers together, likewise
MAX_CLIENTS: Final = 65_536

_MAX_SIZE: Final = 12 + 255 + 4 + 11  # of a message with the longest name and a plain OPT; longer ones hold records
_DOORS: Final = 1 << 16
_CLIENT, _EVERYONE = Scope.CLIENT, Scope.EVERYONE  # reading an Enum's member costs 0.1 us
_HEADER: Final = 12
_QUESTION_TAIL: Final = 4
_RECORD_HEAD: Final = 12  # of a record whose owner is a pointer
_OBJECT: Final = 48  # octets that Python takes for a bytes object beside its content
_ADDRESS_TYPES: Final = frozenset({int(RRType.A), int(RRType.AAAA)})

# (the answer after its id, the cell that counts it, what makes the next answer where their order rotates)
Entry = tuple[bytes | None, Cell, Callable[[], bytes] | None]
View = dict[bytes, Entry]


class HotTable:
    """The ready-made answers of one socket. Read `common` and `views` anew for each batch: they get replaced.

    When full it starts over from nothing: refilling costs each name one walk through the steps. A name is let in only
    when it is asked a second time, so a flood of random names fills nothing.
    """

    def __init__(self, view_name: Callable[[bytes], Hashable], rng: Random) -> None:
        self.common: View = {}
        self.views: dict[bytes, View] = {}  # by packed client address: the view of the node it is on
        self.started_over = 0
        self._view_name = view_name  # says where a packed address is; asked once for each
        self._rng = rng
        self._by_name: dict[Hashable, View] = {}
        self._filed: dict[Fact, list[tuple[View, bytes]]] = {}
        self._doors = bytearray(_DOORS)
        self._stored = 0
        self._octets = 0

    def __repr__(self) -> str:
        return f"<HotTable {len(self)} entries, {len(self._by_name)} views, {self._octets} octets>"

    def __len__(self) -> int:
        return len(self.common) + sum(len(view) for view in self._by_name.values())

    def offer(
        self, data: bytes, query: Query, address: bytes, reply: bytes, resolution: Resolution, cell: Cell, rotate: bool
    ) -> None:
        """Keep `reply` for the next such question from whoever may be told the same.

        Not kept: what only this client may be told, questions that hardly repeat (in mixed case, with EDNS options or
        records), first askings. With `rotate`, an answer of several addresses is kept so that each asking moves their
        order on.
        """
        key = data[2:]
        if resolution.scope == _CLIENT or not _repeatable(query) or not self._knocked_before(key):
            return
        if self._stored >= MAX_STORED or self._octets >= MAX_OCTETS:
            self.start_over()
        view = self.common if resolution.scope == _EVERYONE else self._view_of(address)
        if key in view:
            return  # only this client was new to it
        entry: Entry = (reply[2:], cell, None)
        size = len(reply)
        if rotate and _order_matters(resolution):
            rotation = _rotation_of(query, resolution, reply, self._rng)
            if rotation is None:
                return
            entry, size = (None, cell, rotation), rotation.octets
        self._store(view, key, entry, size, resolution.facts)

    def forget(self, facts: Iterable[Fact]) -> None:
        """Drop every answer that rests on one of these facts, and every verdict about where a client is that may."""
        for fact in facts:
            if fact == EVERYTHING:
                self.start_over()
                return
            for view, key in self._filed.pop(fact, ()):
                view.pop(key, None)
            if fact.kind == "address" and isinstance(fact.name, bytes):
                self.views.pop(fact.name, None)

    def start_over(self) -> None:
        """Forget all answers."""
        self.common, self.views = {}, {}
        self._by_name, self._filed = {}, {}
        self._stored = self._octets = 0
        self.started_over += 1

    def _store(self, view: View, key: bytes, entry: Entry, size: int, facts: tuple[Fact, ...]) -> None:
        view[key] = entry
        for fact in facts:
            self._filed.setdefault(fact, []).append((view, key))
        # Never counted down: the lists above keep what was forgotten under another fact until the next start.
        self._stored += 1
        self._octets += len(key) + size

    def _view_of(self, address: bytes) -> View:
        view = self.views.get(address)
        if view is None:
            if len(self.views) >= MAX_CLIENTS:
                self.views = {}
            view = self.views[address] = self._by_name.setdefault(self._view_name(address), {})
        return view

    def _knocked_before(self, key: bytes) -> bool:
        """Whether this key, or one that looks like it, was the last to knock at its door (a one-octet memory each)."""
        mark = hash(key)
        door, sign = mark & _DOORS - 1, mark >> 16 & 0xFF or 1  # 0: nobody has knocked here yet
        known = self._doors[door] == sign
        self._doors[door] = sign
        return known


class Rotation:
    """Makes an answer's next order: round robin, with a new shuffle at each turn's end.

    The shuffle keeps the neighbour of a dead endpoint from inheriting all of its clients.
    """

    __slots__ = ("_doubled", "_fitting", "_foot", "_head", "_records", "_rng", "_turn", "_width")

    def __init__(self, head: bytes, records: list[bytes], fitting: int, foot: bytes, rng: Random) -> None:
        self._head, self._foot = head, foot
        self._records, self._rng = records, rng
        self._width = len(records[0])
        self._fitting = fitting * self._width
        self._turn = len(records)
        self._doubled = b""

    @property
    def octets(self) -> int:
        """About as much memory as it takes: each record thrice, once as an object of its own."""
        return len(self._head) + len(self._foot) + len(self._records) * (3 * self._width + _OBJECT)

    def __call__(self) -> bytes:
        if self._turn == len(self._records):
            self._rng.shuffle(self._records)
            self._doubled = b"".join(self._records) * 2
            self._turn = 0
        at = self._turn * self._width
        self._turn += 1
        return self._head + self._doubled[at : at + self._fitting] + self._foot


def _repeatable(query: Query) -> bool:
    edns = query.edns
    plain = edns is None or not edns.options
    # Mixed case (0x20): a name has two spellings to the power of its letters.
    return plain and query.size <= _MAX_SIZE and query.spelling.lower() == query.spelling


def _order_matters(resolution: Resolution) -> bool:
    return any(len(rrset.rdatas) > 1 and rrset.rtype in _ADDRESS_TYPES for rrset in resolution.response.answer)


def _rotation_of(query: Query, resolution: Resolution, reply: bytes, rng: Random) -> Rotation | None:
    """None where the addresses are not one block of records behind the question (a CNAME is in front), or none fit."""
    answer = resolution.response.answer
    fitting = int.from_bytes(reply[6:8], "big")
    if len(answer) != 1 or answer[0].owner != b"" or fitting == 0:
        return None
    rrset = answer[0]
    start = _HEADER + len(query.spelling) + _QUESTION_TAIL
    width = _RECORD_HEAD + len(rrset.rdatas[0])
    head = reply[start : start + _RECORD_HEAD]
    records = [head + rdata for rdata in rrset.rdatas]
    return Rotation(reply[2:start], records, fitting, reply[start + fitting * width :], rng)
