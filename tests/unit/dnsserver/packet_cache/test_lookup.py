"""Ready-made replies of a batch of datagrams, and of one message."""

from types import SimpleNamespace
from typing import Any

from tests.support.dns_messages import query
from tests.support.model_builders import packed
from topodns.dnsserver.packet_cache.lookup import answer_batch, ready_reply
from topodns.query.packet_entry import Variants

ADDRESS = packed("10.240.0.1")
COMMON, LOCAL, OTHER, EXPIRED = (query(f"{name}.example. A", ident=7)[2:] for name in ("one", "two", "three", "gone"))
LOWER = query("four.example. A", ident=7)[2:]


def table() -> Any:
    """A packet cache with replies that are their own names: for everyone, for one node, expired, and of variants."""
    return SimpleNamespace(
        common={
            COMMON: (b"reply one", [0], None, None),
            EXPIRED: (b"", [0], lambda: None, None),
            LOWER: (LOWER, [0], None, Variants(spellings=True)),
        },
        views={ADDRESS: {LOCAL: (b"", [0], lambda: b"reply two", None)}},
    )


def test_queries_of_a_batch_are_overwritten_by_their_replies_and_counted() -> None:
    cache, size = table(), 64
    messages = [COMMON, LOCAL, OTHER, EXPIRED, COMMON]
    memory = bytearray()
    for number, message in enumerate(messages):
        memory += (bytes((0, number)) + message).ljust(size - 4) + ADDRESS
    starts, sizes = [size * at for at in range(5)], [2 + len(message) for message in messages]

    class Memory:
        def __getitem__(self, key: slice, /) -> bytes:
            return bytes(memory[key])

        def __setitem__(self, key: slice, value: bytes, /) -> None:
            memory[key] = value

    lengths, cell = answer_batch(cache, Memory(), starts, sizes, (size - 4, size))
    assert lengths == [11, 11, 0, 0, 11]
    replies = [bytes(memory[start : start + length]) for start, length in zip(starts, lengths, strict=True)]
    assert replies == [b"\0\0reply one", b"\0\1reply two", b"", b"", b"\0\4reply one"]
    assert cell is cache.common[COMMON][1]
    assert (cache.common[COMMON][1], cache.views[ADDRESS][LOCAL][1], cache.common[EXPIRED][1]) == ([2], [1], [0])


def test_a_reply_for_one_node_is_for_its_clients_alone() -> None:
    found = ready_reply(table(), LOCAL, ADDRESS)
    assert found is not None
    assert found[0] == b"reply two"
    assert ready_reply(table(), LOCAL, packed("10.240.0.2")) is None


def test_an_expired_reply_is_a_miss() -> None:
    assert ready_reply(table(), EXPIRED, ADDRESS) is None


def test_another_spelling_gets_the_reply_in_its_own() -> None:
    message = query("FOUR.example. A", ident=7)[2:]
    found = ready_reply(table(), message, ADDRESS)
    assert found is not None
    assert found[0] == message
    assert ready_reply(table(), query("ONE.example. A", ident=7)[2:], ADDRESS) is None
