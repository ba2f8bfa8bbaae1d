"""The dictionary of ready-made answers: every byte after the id in, every byte after the id out.

Two levels: answers that are the same for everyone, and answers for the node that a client is on. A key holds flags,
question and OPT whole, so a hit cannot be wrong about RD, CD, class, size or spelling. What the cluster learns is
visible at once: each entry is filed under the facts it rests on, and `forget` takes those entries out.
"""

from collections.abc import Callable, Hashable, Iterable
from random import Random
from typing import Final

from topodns.cluster.facts import EVERYTHING, Fact
from topodns.dns.message import Query
from topodns.resolve.ageing import Ageing
from topodns.resolve.budget import Budget
from topodns.resolve.rotation import order_matters, rotation_of
from topodns.resolve.step import Resolution, Scope
from topodns.resolve.tally import Cell
from topodns.settings.memory import SERVER

MAX_STORED: Final = 32_768  # entries, since the table last started over
MAX_CLIENTS: Final = 65_536

_MAX_SIZE: Final = 12 + 255 + 4 + 11  # of a message with the longest name and a plain OPT; longer ones hold records
_DOORS: Final = 1 << 16
_OBJECTS: Final = 190  # octets of an entry beside its content, and its place in a dictionary: see bench/cache_memory.py
_FILED: Final = 100  # and of its place under each fact
_CLIENT, _EVERYONE = Scope.CLIENT, Scope.EVERYONE  # reading an Enum's member costs 0.1 us

# (the answer after its id, the cell that counts it, what makes the answer where it rotates or ages: None if outlived)
Entry = tuple[bytes | None, Cell, Callable[[], bytes | None] | None]
View = dict[bytes, Entry]


class HotRoom:
    """What the tables of all sockets share: their memory, and what they have been asked for once."""

    def __init__(self, octets: int) -> None:
        self.budget = Budget(octets)
        self._doors = bytearray(_DOORS)

    def knocked_before(self, key: bytes) -> bool:
        """Whether this key, or one that looks like it, was the last to knock at its door (a one-octet memory each)."""
        mark = hash(key)
        door, sign = mark & _DOORS - 1, mark >> 16 & 0xFF or 1  # 0: nobody has knocked here yet
        known = self._doors[door] == sign
        self._doors[door] = sign
        return known


class HotTable:
    """The ready-made answers of one socket. Read `common` and `views` anew for each batch: they get replaced.

    When full it starts over from nothing: refilling costs each name one walk through the steps. A name is let in only
    when it is asked a second time, so a flood of random names fills nothing.
    """

    def __init__(
        self,
        view_name: Callable[[bytes], Hashable],
        rng: Random,
        clock: Callable[[], float],
        room: HotRoom | None = None,
    ) -> None:
        self.common: View = {}
        self.views: dict[bytes, View] = {}  # by packed client address: the view of the node it is on
        self.started_over = 0
        self._view_name = view_name  # says where a packed address is; asked once for each
        self._rng = rng
        self._clock = clock  # of the `valid_until` of resolutions
        self._by_name: dict[Hashable, View] = {}
        self._filed: dict[Fact, list[tuple[View, bytes]]] = {}
        self._room = room or HotRoom(SERVER.ready_made)
        self._room.budget.enrol(self)
        self.limit = 0  # octets
        self._stored = 0
        self.octets = 0  # of keys, answers and what Python takes for them, since the table last started over

    def __repr__(self) -> str:
        return f"<HotTable {len(self)} entries, {len(self._by_name)} views, {self.octets} octets>"

    def __len__(self) -> int:
        return len(self.common) + sum(len(view) for view in self._by_name.values())

    def offer(
        self, data: bytes, query: Query, address: bytes, reply: bytes, resolution: Resolution, cell: Cell, rotate: bool
    ) -> None:
        """Keep `reply` for the next such question from whoever may be told the same.

        Not kept: what only this client may be told, questions that hardly repeat (in mixed case, with EDNS options or
        records), first askings. With `rotate`, an answer of several addresses is kept so that each asking moves their
        order on. One with a `valid_until` ages, and is replaced by what is offered after that.
        """
        key = data[2:]
        if resolution.scope == _CLIENT or not _repeatable(query) or not self._room.knocked_before(key):
            return
        if self._stored >= MAX_STORED or (self.octets >= self.limit and not self._room.budget.grant(self)):
            self.start_over()
        view = self.common if resolution.scope == _EVERYONE else self._view_of(address)
        kept = view.get(key)
        if kept is not None and not self._outlived(kept):
            return  # only this client was new to it
        made = self._entry(reply, resolution, cell, rotate)
        if made is None:
            return
        if kept is not None:
            self._take_out(view, key, kept)
        self._store(view, key, *made, resolution.facts)

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

    def lower(self, octets: int) -> None:
        """Let another table have so many octets of the limit."""
        self.limit -= octets
        if self.octets > self.limit:
            self.start_over()

    def start_over(self) -> None:
        """Forget all answers."""
        self.common, self.views = {}, {}
        self._by_name, self._filed = {}, {}
        self._stored = self.octets = 0
        self.started_over += 1

    def _entry(self, reply: bytes, resolution: Resolution, cell: Cell, rotate: bool) -> tuple[Entry, int] | None:
        """The entry and its octets; None where the order should change and cannot."""
        rotation = None
        if rotate and order_matters(resolution.response.answer):
            rotation = rotation_of(resolution.response.answer, reply, self._rng)
            if rotation is None:
                return None
        if resolution.valid_until is not None:
            ageing = Ageing(reply, resolution.valid_until, self._clock, rotation, bool(resolution.facts))
            return (None, cell, ageing), ageing.octets
        if rotation is not None:
            return (None, cell, rotation), rotation.octets + _OBJECTS
        return (reply[2:], cell, None), len(reply) + _OBJECTS

    def _store(self, view: View, key: bytes, entry: Entry, size: int, facts: tuple[Fact, ...]) -> None:
        view[key] = entry
        for fact in facts:
            self._filed.setdefault(fact, []).append((view, key))
        # Never counted down: the lists above keep what was forgotten under another fact until the next start.
        self._stored += 1
        self.octets += len(key) + size + len(facts) * _FILED

    @staticmethod
    def _outlived(kept: Entry) -> bool:
        made_by = kept[2]
        return isinstance(made_by, Ageing) and made_by() is None

    def _take_out(self, view: View, key: bytes, kept: Entry) -> None:
        """Give back what an outlived entry took, so that an answer of a short TTL does not fill the table by itself."""
        made_by = kept[2]
        assert isinstance(made_by, Ageing)
        del view[key]
        self.octets -= len(key) + made_by.octets
        if not made_by.filed:
            self._stored -= 1

    def _view_of(self, address: bytes) -> View:
        view = self.views.get(address)
        if view is None:
            if len(self.views) >= MAX_CLIENTS:
                self.views = {}
            view = self.views[address] = self._by_name.setdefault(self._view_name(address), {})
        return view


def _repeatable(query: Query) -> bool:
    edns = query.edns
    plain = edns is None or not edns.options
    # Mixed case (0x20): a name has two spellings to the power of its letters.
    return plain and query.size <= _MAX_SIZE and query.spelling.lower() == query.spelling
