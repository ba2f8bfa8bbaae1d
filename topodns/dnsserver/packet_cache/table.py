"""The packet cache table: a dictionary from the octets of a query to those of its reply, both without the id.

Two levels: answers that are the same for all clients, and answers for the clients of one view (those on one node and,
for `autopath`, in one namespace). `lookup` finds the entries. Changes of cluster state take effect at once: each entry
is indexed by its dependencies (facts), and `forget` removes the entries of those that changed.

Clients vary a query without changing its meaning: a cookie (RFC 7873), padding (RFC 7830), options that this server
ignores, random case (0x20). All variants of a query have the same plain form, which is the key of the entry: the same
query with its name in lower case and without EDNS options. It keeps flags, type, class and the OPT record's payload
size and DO, so that an entry cannot be wrong about those. Queries with an option that topodns reads (`_READ`), with
records of their own or with another layout have no plain form. Which variants an entry answers depends on the server
block (`block_variants`) and on the reply (`variants_of`). The reply to one is the entry's with the variant's spelling
of the question.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from random import Random
from typing import Final
from weakref import WeakSet

from topodns.dependency import CACHED, EVERYTHING, Fact
from topodns.dns.message import Option, Query, RRset
from topodns.dns.rrtype import ADDRESS_TYPES, RRType, members
from topodns.dns.soa import MAILBOX, PRIMARY, SHARED_WITH_NAMES
from topodns.dns.wire_format import (
    HEADER_SIZE,
    OPTION_HEAD_SIZE,
    POINTER,
    POINTER_OCTET,
    QUESTION_TAIL_SIZE,
    ROOT_RECORD_HEAD_SIZE,
    end_of_name,
)
from topodns.dnsserver.packet_cache.reply_makers import Ageing, record_places, rotation_of
from topodns.dnsserver.plain_question import OPT_BEGIN
from topodns.memory.budget import SERVER, Budget
from topodns.plugins.block import ServerBlock
from topodns.plugins.order import ORDER
from topodns.plugins.plugin import Reads, load
from topodns.query.counters import Cell
from topodns.query.packet_entry import Entry, Variants, View
from topodns.query.plugin import Resolution, Scope

MAX_STORED: Final = 32_768  # entries since the table was last cleared
MAX_CLIENTS: Final = 65_536  # a further one replaces the one whose view was used least recently by `keep`

_SEEN_SLOTS: Final = 1 << 16  # of the filter of keys seen once, an octet each
_OBJECTS: Final = 202  # octets of an entry beside its content, and its slot in a dictionary: see bench/cache_memory.py
_INDEXED: Final = 100  # and of its index entry under each fact
_CLIENT, _EVERYONE = Scope.CLIENT, Scope.EVERYONE  # reading an Enum's member costs 0.1 us

NAME_AT: Final = HEADER_SIZE - 2  # offset of the question's name in a message without its id

# All options that code here reads are in `Option`; of these, a server without cookies ignores COOKIE (RFC 7873
# section 5.2).
_READ: Final = frozenset(members(Option).values()) - {Option.COOKIE}
_MAX_OPTIONS: Final = 8  # a message with more options is no variant and takes the handler

_COUNTS: Final = slice(2, NAME_AT)  # QDCOUNT, ANCOUNT, NSCOUNT and ARCOUNT
_BARE: Final = b"\0\1\0\0\0\0\0\0"  # counts of one question and no record
_WITH_OPT: Final = b"\0\1\0\0\0\0\0\1"  # and of one question and an OPT record

BEHIND_NAME: Final = (1 + QUESTION_TAIL_SIZE, 1 + QUESTION_TAIL_SIZE + ROOT_RECORD_HEAD_SIZE)
"""Octets of a message in its plain form from the last one of the name on, without and with an OPT record."""

_BESIDE_NAME: Final = HEADER_SIZE + QUESTION_TAIL_SIZE  # octets of a plain form beside the name, with the id
_BESIDE_NAME_WITH_OPT: Final = _BESIDE_NAME + ROOT_RECORD_HEAD_SIZE
_NO_OPTIONS: Final = b"\0\0"  # RDLENGTH of an OPT record without options

OF_OPTIONS: Final = Variants(spellings=False)
OF_SPELLINGS: Final = Variants(spellings=True)


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
        # By packed client address: the view of the node it is on. The last one was used by `keep` most recently.
        self.views: OrderedDict[bytes, View] = OrderedDict()
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
                self.views.pop(fact.name, None)

    def lower(self, octets: int) -> None:
        """Reduce the limit by so many octets, for another table; clear this one if it is then over the limit."""
        self.limit -= octets
        if self.octets > self.limit:
            self.clear()

    def clear(self) -> None:
        """Remove all entries and views."""
        self.common = {}
        self.views = OrderedDict()
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
        if rotating and _order_matters(rotating):
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
        self.views[address] = view
        self.views.move_to_end(address)
        if len(self.views) > MAX_CLIENTS:
            self.views.popitem(last=False)
        return view


def _order_matters(answer: Sequence[RRset]) -> bool:
    return any(len(rrset.rdatas) > 1 and rrset.rtype in ADDRESS_TYPES for rrset in answer)


def _reply_to_plain_form(message: bytes, key: bytes, reply: bytes, variants: Variants) -> bytes | None:
    """The reply to the plain form (`key`) of this message; None if the reply is to another spelling only."""
    name = name_in(key, key)
    if message.startswith(name, NAME_AT):
        return reply
    return reply[:2] + respelled(reply[2:], name) if variants.spellings else None


def key_of(message: bytes, query: Query, has_variants: bool) -> bytes | None:
    """The plain form of a parsed message; None if it has none, or is a variant and variants are not allowed.

    The message is without its id. A label with a zero octet would end the name too early in `plain_form`: other names
    would have the same form.
    """
    _, _, _, spelling, _, _, edns, size = query
    if size - len(spelling) == (_BESIDE_NAME if edns is None else _BESIDE_NAME_WITH_OPT) and spelling.islower():
        return message  # only the question, and an OPT record without options, if any
    if spelling.find(0) != len(spelling) - 1:
        return None
    key = plain_form(message)
    return key if has_variants or key == message else None


def plain_form(message: bytes) -> bytes | None:
    """The plain form of a query; None if it has another layout, an option that is read here (`_READ`), or over 8
    options.

    Both are without their ids. The layout: one question, no record but an OPT at the end, options that fill its RDATA
    exactly. The name is taken to end at its first zero octet, which is wrong if a label contains one: the caller must
    exclude that. A plain form that equals the one of a parsed message, whose name has no such label, proves that this
    message is valid, too, and has the same question.
    """
    name_end = message.find(0, NAME_AT) + 1
    # Lower only the name: a type or a class may contain the octets of letters.
    counts = message[_COUNTS]
    if counts == _WITH_OPT:
        end = name_end + QUESTION_TAIL_SIZE
        at = end + ROOT_RECORD_HEAD_SIZE
        if message[end : end + len(OPT_BEGIN)] != OPT_BEGIN or not _has_unread_options(message, at):
            return None
        return message[:NAME_AT] + message[NAME_AT:name_end].lower() + message[name_end : at - 2] + _NO_OPTIONS
    if counts == _BARE and len(message) == name_end + QUESTION_TAIL_SIZE:
        return message[:NAME_AT] + message[NAME_AT:name_end].lower() + message[name_end:]
    return None


def _has_unread_options(message: bytes, at: int) -> bool:
    """Whether the OPT record's RDATA, which begins at `at`, is the rest of the message and has no option in `_READ`.

    True without options, False for more than 8. Also checks that the options are complete, as
    `wire_reader.read_options` does.
    """
    end = len(message)
    if at > end or end - at != message[at - 2] << 8 | message[at - 1]:
        return False
    for _ in range(_MAX_OPTIONS):
        if at == end:
            return True
        if end - at < OPTION_HEAD_SIZE:
            return False
        if message[at] << 8 | message[at + 1] in _READ:
            return False
        at += OPTION_HEAD_SIZE + (message[at + 2] << 8 | message[at + 3])
        if at > end:
            return False
    return at == end


def name_in(message: bytes, plain: bytes) -> bytes:
    """The question's name, in wire form, of a message without its id whose plain form is `plain`."""
    behind = QUESTION_TAIL_SIZE + (ROOT_RECORD_HEAD_SIZE if plain[NAME_AT - 1] else 0)
    return message[NAME_AT : len(plain) - behind]


def block_variants(block: ServerBlock) -> Variants | None:
    """The query variants that the plugins of this block allow at most; None if a plugin may read any EDNS option.

    A `view` does, so no block of its listener has variants: see `BlockTable`.
    """
    reads = max((load(name).reading(settings) for name, settings in block.settings.items()), default=Reads.QUESTION)
    if reads is Reads.EVERYTHING:
        return None
    return OF_SPELLINGS if reads is Reads.QUESTION else OF_OPTIONS


@lru_cache
def _spelled_types(plugin: str) -> frozenset[int]:
    return load(plugin).spells if plugin in ORDER else frozenset()


def variants_of(reply: bytes, resolution: Resolution, allowed: Variants) -> Variants:
    """The variants of `allowed` that this reply answers: other EDNS options always, other spellings of the name if to
    respell the question respells the whole reply.

    For that, each name of the reply that repeats the query's spelling must be a pointer into the question. Two kinds of
    replies are known to be so: those whose records are all addresses of the query's name, from a plugin that spells no
    other name (`spells`); and those whose only record is the SOA of a cluster's origin, as its names end in the query's
    spelling of the origin (as in CoreDNS).
    """
    spelled = _spelled_types(resolution.plugin) if allowed.spellings else None
    if not spelled:
        return OF_OPTIONS
    response = resolution.response
    for rrset in (*response.answer, *response.authority, *response.additional):
        if rrset.rtype not in spelled:
            return OF_OPTIONS
        if rrset.rtype == RRType.SOA:
            return variants_of_soa(reply)
        if rrset.owner:
            return OF_OPTIONS
    return OF_SPELLINGS


def variants_of_soa(reply: bytes) -> Variants:
    """The variants that hold for a reply whose only record is an SOA: see `variants_of`."""
    name_end = end_of_name(reply, HEADER_SIZE)
    records = [*record_places(reply)]
    if len([record for record in records if record.rtype != RRType.OPT]) != 1 or records[0].rtype != RRType.SOA:
        return OF_OPTIONS
    owner_at = name_end + QUESTION_TAIL_SIZE
    owner = reply[owner_at : owner_at + 2]
    if owner[0] < POINTER_OCTET:
        return OF_OPTIONS
    # MNAME and RNAME, as `soa.soa_rrset` makes them, end in pointers to the origin, too, unless more of them is the
    # question's.
    front = reply[HEADER_SIZE : int.from_bytes(owner, "big") - POINTER].lower()
    spelled = reply.startswith(PRIMARY + owner + MAILBOX + owner, records[0].rdata_at)
    return OF_SPELLINGS if spelled and not front.endswith(SHARED_WITH_NAMES) else OF_OPTIONS


def respelled(tail: bytes, name: bytes) -> bytes:
    """A reply without its id, with the question's name spelled as `name`, which is the same name."""
    return tail[:NAME_AT] + name + tail[NAME_AT + len(name) :]
