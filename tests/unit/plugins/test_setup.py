"""Shared objects of the process, handlers of a server block, and its listeners, as `setup` finds them."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.chains import process
from tests.support.corefile_settings import only_block
from tests.support.model_builders import packed
from topodns.dependency import node_fact
from topodns.plugins.setup import BlockListener, BlockSetup, Shared


def test_objects_of_the_process_are_one_for_each_type_and_labels() -> None:
    shared = Shared()
    one = shared.get(list, "a")
    assert shared.get(list, "a") is one is not shared.get(list, "b")
    assert shared.get(dict, "a", make=lambda: {1: 2}) == {1: 2}
    assert dict(shared.all(list)) == {("a",): [], ("b",): []}


def test_handlers_are_found_by_their_type_in_the_order_of_setup() -> None:
    block = BlockSetup(process(), only_block("whoami"))
    assert block.first(str) is None
    for handler in ("forward", 53, "cache"):
        assert block.provide(handler) is handler
    assert (block.provided(str), block.first(str), block.first(int)) == (("forward", "cache"), "forward", 53)


async def test_what_must_be_done_before_the_first_query_is_awaited_in_order() -> None:
    block, calls = BlockSetup(process(), only_block("whoami")), list[str]()

    async def action(name: str) -> None:
        calls.append(name)

    for name in ("first", "second"):
        block.before_queries(partial(action, name))
    await block.prepare()
    assert calls == ["first", "second"]


def test_a_block_begins_and_ends_with_its_generation() -> None:
    block, calls = BlockSetup(process(), only_block("whoami")), []
    source: Any = SimpleNamespace(poller=object(), changed=None)
    block.watch_changing(source)
    block.on_start(lambda: calls.append("start"))
    block.on_close(lambda: calls.append("close"))
    assert (block.work, calls) == ([source.poller], [])
    block.start(lambda facts: calls.append(f"{len(facts)} changed"))
    source.changed(frozenset({node_fact("a")}))
    block.close()
    assert calls == ["start", "1 changed", "close"]


@pytest.mark.parametrize(
    ("host", "server", "addresses"),
    [
        ("", "dns://:53", ["10.0.0.1", "fd00::1"]),
        ("10.0.0.1", "dns://10.0.0.1:53", ["10.0.0.1"]),
        ("fe80::1%eth0", "dns://[fe80::1%eth0]:53", ["fe80::1"]),
        ("127.0.0.1", "dns://127.0.0.1:53", []),
    ],
)
def test_a_listener_has_the_addresses_that_endpoints_of_its_service_have(
    host: str, server: str, addresses: list[str]
) -> None:
    own = frozenset(map(packed, ("fd00::1", "10.0.0.1", "127.0.0.1", "::1")))
    listener = BlockListener(host, 53, own)
    assert (listener.server, listener.addresses) == (server, tuple(map(packed, addresses)))
