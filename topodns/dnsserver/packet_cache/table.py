"""The packet cache table: a dictionary from the octets of a query to those of its reply, both without the id.

Two levels: answers that are the same for all clients, and answers for the clients of one view (those on one node and,
for `autopath`, in one namespace). `key` makes the key of an entry, `lookup` finds the entries. Changes of cluster state
take effect at once: each entry is indexed by its dependencies (facts), and `forget` removes the entries of those that
changed.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from random import Random
from typing import Final
from weakref import WeakSet

from topodns.dependency import CACHED, EVERYTHING, Fact
from topodns.dns.message import Query, RRset
from topodns.dnsserver.packet_cache.countdown import Ageing
from topodns.dnsserver.packet_cache.key import NAME_AT, key_of, name_in
from topodns.dnsserver.packet_cache.rotation import order_matters, rotation_of
from topodns.dnsserver.packet_cache.variants import respelled, variants_of
from topodns.memory.bounded import ReadLRU
from topodns.memory.budget import SERVER, Budget
from topodns.query.counters import Cell
from topodns.query.packet_entry import Entry, Variants, View
from topodns.query.plugin import Resolution, Scope

MAX_STORED: Final = 32_768  # entries since the table was last cleared
MAX_CLIENTS: Final = 65_536  # a further one replaces the one whose view was used least recently by `offer`

_SEEN_SLOTS: Final = 1 << 16  # of the filter of keys seen once, an octet each
_OBJECTS: Final = 202  # octets of an entry beside its content, and its slot in a dictionary: see bench/cache_memory.py
_INDEXED: Final = 100  # and of its index entry under each fact
_CLIENT, _EVERYONE = Scope.CLIENT, Scope.EVERYONE  # reading an Enum's member costs 0.1 us


class PacketCaches:
    """The packet caches of all sockets: their memory budget, and the filter of keys seen once."""

    def __init__(self, octets: int) -> None:
        self.budget = Budget(octets)
        self.tables: WeakSet[PacketCache] = WeakSet()
        self._seen = bytearray(_SEEN_SLOTS)

    def add(self, table: "PacketCache") -> None:
        """Add the packet cache of one socket; it leaves when it is garbage-collected."""
        self.budget.add(table)
        self.tables.add(table)

    def forget(self, facts: frozenset[Fact]) -> None:
        """Remove every entry of every socket that depends on one of these facts."""
        for table in self.tables:
            table.forget(facts)

    def was_seen(self, key: bytes) -> bool:
        """Whether this key was recorded before in the filter of keys seen (the doorkeeper of TinyLFU); it is now.

        Each of the 65,536 slots has 8 bits of a hash. So another key with the same hash bits counts as recorded, and
        one that is recorded in the same slot later replaces this one.
        """
        hashed, seen = hash(key), self._seen
        slot, mark = hashed & _SEEN_SLOTS - 1, hashed >> 16 & 0xFF or 1  # 0: empty slot
        if seen[slot] == mark:
            return True
        seen[slot] = mark
        return False


class PacketCache:
    """The packet cache of one socket. Read `common` and `views` anew for each batch: they get replaced.

    A full table is cleared: refilling costs one new answer per name. A query is admitted only when it comes
    a second time, so a flood of random names does not fill the table.
    """

    def __init__(
        self,
        view_key: Callable[[bytes], Hashable],
        rng: Random,
        clock: Callable[[], float],
        caches: PacketCaches | None = None,
    ) -> None:
        self.common: View = {}
        self._clients: ReadLRU[bytes, View] = ReadLRU(MAX_CLIENTS)
        self.views = self._clients.entries  # by packed client address: the view of the node it is on
        self.clears = 0  # calls of `clear`
        self.changes = 0  # calls of `forget`
        self._view_key = view_key  # packed address to the key of its view; called once per address
        self._rng = rng
        self._clock = clock  # of the `valid_until` of resolutions
        self._by_key: dict[Hashable, View] = {}
        self._by_fact: dict[Fact, list[tuple[View, bytes]]] = {}
        self._caches = caches or PacketCaches(SERVER.ready_made)
        self._caches.add(self)
        self.was_seen = self._caches.was_seen
        self.limit = 0  # octets
        self._stored = 0
        self.octets = 0  # memory of keys and answers, Python objects included, since the table was last cleared

    def __repr__(self) -> str:
        return f"<PacketCache {len(self)} entries, {len(self._by_key)} views, {self.octets} octets>"

    def __len__(self) -> int:
        return len(self.common) + sum(len(view) for view in self._by_key.values())

    def offer(
        self,
        data: bytes,
        query: Query,
        address: bytes,
        reply: bytes,
        resolution: Resolution,
        cell: Cell,
        rotate: bool,
        allowed: Variants | None = None,
    ) -> None:
        """Keep `reply` for the same query from the clients in the resolution's scope.

        Not kept: replies with Scope.CLIENT, replies to queries not seen before, to queries without a plain form, and to
        variants that are not allowed. With `rotate`, an answer with several addresses rotates their order at each hit.
        A reply with a `valid_until` expires and is replaced by the next offer. `allowed`: query variants that the
        block's plugins allow.
        """
        if resolution.scope == _CLIENT:
            return
        message = data[2:]
        key = key_of(message, query, allowed is not None)
        if key is None or not self.was_seen(key):
            return
        variants = None if allowed is None else variants_of(reply, resolution, allowed)
        if variants is not None and key != message:
            plain = _reply_to_plain_form(message, key, reply, variants)
            if plain is None:
                return
            reply = plain
        self.keep(
            key=key,
            reply=reply,
            address=address,
            scope=resolution.scope,
            facts=resolution.facts,
            valid_until=resolution.valid_until,
            rotating=resolution.response.answer if rotate else (),
            cell=cell,
            variants=variants,
        )

    def keep(
        self,
        key: bytes,
        reply: bytes,
        address: bytes,
        scope: Scope,
        facts: tuple[Fact, ...],
        valid_until: float | None,
        rotating: Sequence[RRset],
        cell: Cell,
        variants: Variants | None,
    ) -> None:
        """Keep `reply`, that to the query with this key, for the clients in this scope, unless it is there already.

        `rotating`: the answer section, if addresses in it rotate their order at each hit. `variants`: the query
        variants that the reply answers.
        """
        if scope == _CLIENT:
            return
        if self._stored >= MAX_STORED or (self.octets >= self.limit and not self._caches.budget.grant(self)):
            self.clear()
        view = self.common if scope == _EVERYONE else self._view_of(address)
        kept = view.get(key)
        if kept is not None and not self._is_expired(kept):
            return  # the entry exists; only this client's view was missing
        made = self._entry(reply, facts, valid_until, rotating, cell, variants)
        if made is None:
            return
        if kept is not None:
            self._remove_expired(view, key, kept, facts)
        self._store(view, key, *made, facts)

    def forget(self, facts: Iterable[Fact]) -> None:
        """Remove every entry that depends on one of these facts, and the choice of a view for each client whose
        location may have changed.
        """
        self.changes += 1
        for fact in facts:
            if fact == EVERYTHING:
                self.clear()
                return
            for view, key in self._by_fact.pop(fact, ()):
                view.pop(key, None)
            if fact.kind == "address" and isinstance(fact.name, bytes):
                self._clients.discard(fact.name)

    def lower(self, octets: int) -> None:
        """Reduce the limit by so many octets, for another table; clear this one if it is then over the limit."""
        self.limit -= octets
        if self.octets > self.limit:
            self.clear()

    def clear(self) -> None:
        """Remove all entries and views."""
        self.common = {}
        self._clients = ReadLRU(MAX_CLIENTS)
        self.views = self._clients.entries
        self._by_key, self._by_fact = {}, {}
        self._stored = self.octets = 0
        self.clears += 1

    def _entry(
        self,
        reply: bytes,
        facts: tuple[Fact, ...],
        valid_until: float | None,
        rotating: Sequence[RRset],
        cell: Cell,
        variants: Variants | None,
    ) -> tuple[Entry, int] | None:
        """The entry and its octets in memory; None if the addresses in the reply should rotate but cannot."""
        rotation = None
        if rotating and order_matters(rotating):
            # With dependencies on cluster state, that state also keeps the RDATAs until the entry is forgotten.
            shared = any(fact.kind != CACHED for fact in facts)
            rotation = rotation_of(rotating, reply, self._rng, shared)
            if rotation is None:
                return None
        if valid_until is not None:
            ageing = Ageing(
                reply=reply,
                valid_until=valid_until,
                clock=self._clock,
                rotation=rotation,
                indexed=bool(facts),
            )
            return (None, cell, ageing, variants), ageing.octets
        if rotation is not None:
            return (None, cell, rotation, variants), rotation.octets + _OBJECTS
        return (reply[2:], cell, None, variants), len(reply) + _OBJECTS

    def _store(self, view: View, key: bytes, entry: Entry, size: int, facts: tuple[Fact, ...]) -> None:
        view[key] = entry
        for fact in facts:
            self._by_fact.setdefault(fact, []).append((view, key))
        # Not decremented by `forget`: the lists above keep entries forgotten under another fact until the next clear.
        self._stored += 1
        self.octets += len(key) + size + len(facts) * _INDEXED

    @staticmethod
    def _is_expired(kept: Entry) -> bool:
        maker = kept[2]
        return isinstance(maker, Ageing) and maker() is None

    def _remove_expired(self, view: View, key: bytes, kept: Entry, facts: tuple[Fact, ...]) -> None:
        """Remove an expired entry and its octets, so that an answer with a short TTL does not fill the table alone.

        `facts`: those of the entry that replaces it. Of an entry that depends on nothing but a subscription of `cache`,
        the index entry goes, too.
        """
        maker = kept[2]
        assert isinstance(maker, Ageing)
        del view[key]
        self.octets -= len(key) + maker.octets
        if not maker.indexed:
            self._stored -= 1
        elif len(facts) == 1 and facts[0].kind == CACHED:
            dependents = self._by_fact.get(facts[0], [])
            kept_on = [each for each in dependents if each[0] is not view or each[1] != key]
            self._by_fact[facts[0]] = kept_on
            self._stored -= len(dependents) - len(kept_on)
            self.octets -= (len(dependents) - len(kept_on)) * _INDEXED

    def _view_of(self, address: bytes) -> View:
        view = self.views.get(address)
        if view is None:
            view = self._by_key.setdefault(self._view_key(address), {})
        self._clients[address] = view
        return view


def _reply_to_plain_form(message: bytes, key: bytes, reply: bytes, variants: Variants) -> bytes | None:
    """The reply to the plain form (`key`) of this message; None if the reply is to another spelling only."""
    name = name_in(key, key)
    if message.startswith(name, NAME_AT):
        return reply
    return reply[:2] + respelled(reply[2:], name) if variants.spellings else None
