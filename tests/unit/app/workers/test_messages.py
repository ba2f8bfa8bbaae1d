"""Messages between the processes of `multisocket`."""

from dataclasses import replace

import pytest

from tests.support.corefile_settings import settings
from topodns.app.load import settings_from_text, settings_from_tokens
from topodns.app.workers.messages import (
    MAX_MESSAGE,
    ChangeType,
    GenerationOrder,
    MessageType,
    StateChange,
    WorkerMessageReader,
    message,
)
from topodns.corefile.zones import ListenAt
from topodns.dns.name import parse_name
from topodns.nodecache.corefile import NODE_CACHE
from topodns.plugins.cache.settings import Prefetch, Share
from topodns.plugins.context import Context

TWO = message(MessageType.FAILED, "abc") + message(MessageType.ACTIVATE, 7)


@pytest.mark.parametrize("size", [1, 2, 5, 6, len(TWO)])
def test_messages_are_complete_however_they_arrive(size: int) -> None:
    reader = WorkerMessageReader()
    found = [each for at in range(0, len(TWO), size) for each in reader.feed(TWO[at : at + size])]
    assert [each.kind for each in found] == [MessageType.FAILED, MessageType.ACTIVATE]
    assert [each.value for each in found] == ["abc", 7]


def test_a_message_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match=f"a message of {MAX_MESSAGE + 1} octets"):
        WorkerMessageReader().feed((MAX_MESSAGE + 1).to_bytes(4, "big") + b"\1")


def test_a_message_of_no_type_is_refused() -> None:
    with pytest.raises(ValueError, match="99"):
        WorkerMessageReader().feed(b"\0\0\0\0\x63")


def test_changes_read_back_as_they_were_written() -> None:
    changes = [
        StateChange(3, ChangeType.OBJECTS, "EndpointSlice", 1_800_000_000, b"packed"),
        StateChange(65_536, ChangeType.COMPLETE, "Pod", 0),
        StateChange(1, ChangeType.SERIAL, "Namespace", 1_800_000_001),
        StateChange(2, ChangeType.OBJECTS, "Service", -86_400, b"at a wall clock before 1970"),
    ]
    (found,) = WorkerMessageReader().feed(message(MessageType.CHANGES, changes))
    assert found.value == changes


def test_an_order_reads_back_with_the_same_settings_whatever_the_files_are_by_then() -> None:
    given = settings('. {\n multisocket 2\n whoami\n}\n"b.test:{$PORT}" {\n log\n}\n', "/etc", {"PORT": "5300"})
    assert given.expanded is not None
    order = GenerationOrder(4, given.expanded, [1, 2], {ListenAt("", 53): 5353, ListenAt("", 0, tls=True): 40_000})
    (found,) = WorkerMessageReader().feed(message(MessageType.GENERATION, order))
    read = found.value
    assert (read.number, list(read.feeds), read.ports) == (4, [1, 2], order.ports)
    again = settings_from_tokens(read.corefile)
    assert (again.blocks, again.digest, list(again.files)) == (given.blocks, given.digest, list(given.files))


def test_the_workers_of_a_node_cache_have_its_defaults_of_the_cache() -> None:
    text = ". {\n multisocket 2\n cache\n forward . 192.0.2.1\n}\n"
    own = replace(
        NODE_CACHE,
        prefetch=Prefetch(10),
        success=Share(3600, min_ttl=0, disabled=(parse_name("cluster.local"),)),
    )
    given = settings_from_text(text, "Corefile", 53, {}, host=Context((), cache=own))
    assert given.expanded is not None
    (found,) = WorkerMessageReader().feed(message(MessageType.GENERATION, GenerationOrder(1, given.expanded, [], {})))
    (block,) = settings_from_tokens(found.value.corefile).blocks
    assert block.settings["cache"] == given.blocks[0].settings["cache"]
    assert block.settings["cache"].serve_stale == NODE_CACHE.serve_stale
