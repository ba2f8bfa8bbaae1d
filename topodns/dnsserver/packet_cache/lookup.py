"""The packet cache lookup: ready-made replies for a batch of datagrams, or for one message over TCP.

The common replies come first, then those for the client's node, and then the reply to the plain form of the query (see
`table`). Most queries have that form and cost one or two dictionary lookups.
"""

from collections.abc import Sequence

from topodns.dnsserver.packet_cache.table import BEHIND_NAME, NAME_AT, PacketCache, name_in, plain_form, respelled
from topodns.query.counters import Cell
from topodns.query.packet_entry import Entry, Slice2Bytes


def answer_batch(
    table: PacketCache, memory: Slice2Bytes, starts: Sequence[int], sizes: Sequence[int], address_span: tuple[int, int]
) -> tuple[list[int], Cell | None]:
    """Overwrite the queries in `memory` that the packet cache answers with their replies, and count them.

    `starts` and `sizes`: the offset of each query and its number of octets; `address_span`: offsets of a packed client
    address, from the start of its query. Returns the number of octets of each reply, 0 for a miss, and the counter cell
    of the last entry found, expired ones included (None: no entry found).
    """
    common, views = table.common, table.views
    first, last = address_span
    lengths: list[int] = []
    cell: Cell | None = None
    # The busiest lines of the program: only locals, one pass, and for a common key no call but the dictionary's.
    for start, size in zip(starts, sizes, strict=False):
        key = memory[start + 2 : start + size]
        entry = common.get(key)
        if entry is None:
            address = memory[start + first : start + last]
            view = views.get(address)
            entry = None if view is None else view.get(key)
            if entry is None:
                entry = variant_entry(table, key, address)
                if entry is None:
                    lengths.append(0)
                    continue
        tail, cell, maker, _ = entry
        if maker is not None:
            tail = maker()
            if tail is None:
                lengths.append(0)
                continue
        cell[0] += 1  # type: ignore[operator]
        length = 2 + len(tail)  # type: ignore[arg-type]
        memory[start + 2 : start + length] = tail  # type: ignore[assignment]
        lengths.append(length)
    return lengths, cell


def ready_reply(table: PacketCache, message: bytes, address: bytes) -> tuple[bytes, Cell] | None:
    """The reply to a message from this packed client address, without its id, and its counter cell; None for a miss.

    `message` is without its id.
    """
    entry = table.common.get(message)
    if entry is None:
        view = table.views.get(address)
        entry = None if view is None else view.get(message)
        if entry is None:
            entry = variant_entry(table, message, address)
            if entry is None:
                return None
    tail, cell, maker, _ = entry
    if maker is not None:
        tail = maker()
    return None if tail is None else (tail, cell)  # None: expired


def variant_entry(table: PacketCache, message: bytes, address: bytes) -> Entry | None:
    """The entry for a message (without its id) that is no key, but a variant of one, with the reply to that variant.

    None if there is none, if the entry does not allow the variant, or if it has expired.
    """
    # Most misses are in their plain form already, which is then no key, or have none.
    if len(message) - message.find(0, NAME_AT) in BEHIND_NAME and message.islower():
        return None
    plain = plain_form(message)
    if plain is None:
        return None
    entry = table.common.get(plain)
    if entry is None:
        view = table.views.get(address)
        entry = None if view is None else view.get(plain)
        if entry is None:
            return None
    tail, cell, maker, variants = entry
    if variants is None:
        return None
    name = name_in(message, plain)
    respell = not plain.startswith(name, NAME_AT)
    if respell and not variants.spellings:
        return None
    if maker is not None:
        tail = maker()
    if tail is None:
        return None
    return respelled(tail, name) if respell else tail, cell, None, None
