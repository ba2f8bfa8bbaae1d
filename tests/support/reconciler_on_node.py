"""A reconciler of the host network at work on the node of a `namespaced_node.Setup`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvloop

from tests.support.event_loops import PATIENCE
from tests.support.host_network_builder import host_network
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL, Setup, ask
from topodns.hostnet.reconciler import HostNetworkReconciler
from topodns.hostnet.rules import RENEWAL_INTERVAL, Firewall, HostNetwork

ADDRESSES = (*LINK_LOCAL.values(), *CLUSTER_DNS.values())


def network(firewall: Firewall = Firewall.AUTO) -> HostNetwork:
    """Both families, the link-local address and that of the cluster DNS."""
    return host_network(",".join(ADDRESSES), firewall=firewall)


def on_node(scene: Setup, story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run the story as a process on the node."""
    with scene.node.entered(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(story(), 2 * PATIENCE))


async def asked(*question: Any) -> str:
    """`namespaced_node.ask`, beside the loop."""
    return await asyncio.to_thread(ask, *question)


async def becomes(expected: str, *question: Any) -> None:
    """Ask until this is the answer; fail after PATIENCE."""
    async with asyncio.timeout(PATIENCE):
        while await asked(*question) != expected:
            pass


@asynccontextmanager
async def kept(
    desired: HostNetwork, heartbeat: int | None = None, removed: bool = True
) -> AsyncIterator[HostNetworkReconciler]:
    """A reconciler that has set up everything and repairs it, with the redirect off.

    At the end it removes link and rules, or leaves them behind if not `removed`.
    """
    reconciler = HostNetworkReconciler(desired, heartbeat)
    await reconciler.set_up_link()
    await reconciler.set_up_rules()
    running = asyncio.create_task(reconciler.run())
    try:
        yield reconciler
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        if removed:
            assert await reconciler.release(has_successor=True)
            assert await reconciler.remove()
        else:
            reconciler.leave(has_successor=True)


@asynccontextmanager
async def renewed(reconciler: HostNetworkReconciler) -> AsyncIterator[None]:
    """The redirect is on meanwhile; afterwards it is not renewed any more."""

    async def renew() -> None:
        while True:
            reconciler.renew()
            await asyncio.sleep(RENEWAL_INTERVAL)

    running = asyncio.create_task(renew())
    await asyncio.sleep(0)
    try:
        yield
    finally:
        running.cancel()
