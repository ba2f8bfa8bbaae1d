"""Reconciles the node's network with the state that a node cache needs; the interface of this package.

The caller keeps this order: listen (first, with IP_FREEBIND), `set_up_link`, `set_up_rules`, then `renew` after each
successful self-probe, which starts the traffic. `run` repairs changes by other programs. At the end: `release`, finish
the queries in flight, `remove`; also if the start was cut short, since an earlier process may have been killed and have
left everything behind.

Calls that block on programs or kernel locks run one after another in a single worker thread.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Never, TypeVar

from topodns.hostnet.commands import HostNetworkError
from topodns.hostnet.firewall import Firewall
from topodns.hostnet.instances import InstanceRegistry
from topodns.hostnet.link import ensure_link, remove_link
from topodns.hostnet.monitor import watch_link, watch_rules
from topodns.hostnet.node_checks import look
from topodns.hostnet.port_watch import PortWatch
from topodns.hostnet.redirect import NoSwitch, Redirect, find_firewall, make_switch
from topodns.hostnet.rules import SWITCH_SECONDS, HostNetwork

log = logging.getLogger(__name__)


GLANCE: Final = 0.15  # seconds between two checks that the rules exist; each costs some microseconds
TICK: Final = 4.5  # seconds at most between two full comparisons with the desired state, so that a repair takes up to 5
MENDED: Final = ("link", "rules")
TEARDOWN_PATIENCE: Final = 4.0  # seconds that removing the rules, or the link, may take

_FIRST_RETRY: Final = 0.1  # seconds, doubled up to TICK
_RULES_PATIENCE: Final = 2.0  # seconds after which no further program is started; one program may take another 2

Result = TypeVar("Result")


@dataclass(slots=True)
class HostNetworkCounts:
    """State and counters for metrics. `repaired` and `last_repair`: by "link" and "rules"; `errors`: by ErrorKind."""

    link_present: bool = False
    rules_present: bool = False
    last_repair: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MENDED, 0.0))  # Unix seconds; 0: never
    repaired: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)


class HostNetworkKeeper:
    """The reconciler, one per process. Call all methods in the event loop's thread."""

    def __init__(self, network: HostNetwork, heartbeat: int | None = None) -> None:
        """`heartbeat`: `watchdog_launch.heartbeat_fd()`."""
        self.counts = HostNetworkCounts()
        self.firewall = network.firewall  # the one in use, once `set_up_rules` has chosen it
        self._network, self._heartbeat = network, heartbeat
        self._switch: Redirect = NoSwitch()
        self.instance_registry = InstanceRegistry(network.interface)
        self._port = PortWatch(network, self.instance_registry)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="host-network")
        self._wake = asyncio.Event()
        self._next_glance: asyncio.TimerHandle | None = None
        self._renewed: float | None = None
        self._told = ""  # the error that was logged last
        self._ended = self._handed_over = False
        self.has_begun = False  # to change anything; until then link and rules are of an earlier process or of others
        self._switch_made = False

    async def set_up_link(self) -> None:
        """Create or adopt the link, bring it up and add its addresses. Raises HostNetworkError."""
        self.has_begun = True
        if self._network.setup_interface:
            await self._counted(lambda: ensure_link(self._network))
            self.counts.link_present = True

    async def set_up_rules(self) -> tuple[str, ...]:
        """Set the rules, with the redirect as found, else off. Returns notices for the log. Raises HostNetworkError."""
        self.has_begun = True
        self.firewall = await self._counted(lambda: find_firewall(self._network))
        beside = self.instance_registry.successor() is not None
        await self._counted(lambda: self._make_switch(beside))
        await self._counted(self._switch.ensure_rules)
        self.counts.rules_present = True
        await self._beside(lambda: self._attempt(self._switch.ensure_beside))
        return await self._beside(look) if self.firewall is not Firewall.NONE else ()

    def renew(self) -> bool:
        """Redirect traffic here for SWITCH_SECONDS. Takes some microseconds and never blocks.

        Returns False if the rules are missing; their repair is started, so call again after the usual interval.
        """
        there = self._switch.renew()
        if there:
            self._renewed = time.monotonic()
        else:
            self._wake.set()
        return there

    def port_sockets(self) -> dict[str, int] | None:
        """The number of other processes' sockets at our port, by `port_watch.HOLDERS`; None if unknown."""
        return self._port.counts

    def switched_on(self) -> bool:
        """Whether traffic is redirected here, by the last successful `renew`."""
        return self._renewed is not None and time.monotonic() - self._renewed < SWITCH_SECONDS

    async def run(self) -> Never:
        """Compare and repair until cancelled: every TICK, and at once after a netlink event or a failed `renew`."""
        watches = [watch_link(self._network)]
        if (rules := watch_rules(self.firewall)) is not None:
            watches.append(rules)
        for watch in watches:
            watch.start(self._wake.set)
        self._glance()
        self._wake.set()  # another instance may have removed something before the monitors started
        retry = _FIRST_RETRY
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(TICK, self._network.sync_interval)):
                        await self._wake.wait()
                self._wake.clear()
                self._port.heed(await self._beside(self._port.look))
                if await self._beside(self._mend):
                    retry = _FIRST_RETRY
                else:
                    await asyncio.sleep(retry)
                    retry = min(2 * retry, TICK)
        finally:
            if self._next_glance is not None:
                self._next_glance.cancel()
            for watch in watches:
                watch.stop()

    async def release(self, succeeded: bool) -> bool:
        """Stop redirecting queries here, unless another instance serves and has `succeeded` this one.

        Returns whether that worked. Queries that arrived before can still be answered; `remove` comes next. Takes
        TEARDOWN_PATIENCE at most and raises nothing. Cancel `run` before. If this process has changed nothing (not
        `has_begun`), link and rules are kept only if another instance serves or the port is in use.
        """
        self._ended = True
        self._renewed, self.counts.rules_present = None, False
        beside = self.instance_registry.end()
        self._handed_over = (beside and succeeded) if self.has_begun else (beside or await self._port_is_taken())
        if self._handed_over:
            log.info("another process serves the listen addresses: link and rules stay")
            self._switch.hand_over()
            self._switch.close()
            return True
        return await self._bounded("rules", self._switch.release)

    async def remove(self) -> bool:
        """Remove the rules and the link, or our addresses from a link that is not ours. Call it last, after `release`.

        Returns whether nothing of ours was left behind. Takes TEARDOWN_PATIENCE at most for each of the two, and raises
        nothing.
        """
        removed = True
        if not self._handed_over:
            deadline = time.monotonic() + _RULES_PATIENCE
            removed = await self._bounded("rules", lambda: self._remove_rules(deadline))
            if self._network.setup_interface:
                self.counts.link_present = False
                removed &= await self._bounded("link", self._remove_link)
        self.instance_registry.close()
        self._thread.shutdown(wait=False)
        return removed

    def leave(self, succeeded: bool) -> None:
        """Instead of `release` and `remove`: keep link and rules, but switch the redirect off unless another instance
        serves and has `succeeded` this one.
        """
        self._ended = True
        if self.instance_registry.end() and succeeded:
            self._switch.hand_over()
        else:
            self._switch.expire()
        self._switch.close()
        self._thread.shutdown(wait=False)

    def _glance(self) -> None:
        """Check the other instances and the rules now and every GLANCE seconds until `run` ends.

        A timer, since a task that sleeps costs several times as much.
        """
        self.instance_registry.look()
        if not self._switch.present():
            self.counts.rules_present = False
            self._wake.set()
        self._next_glance = asyncio.get_running_loop().call_later(GLANCE, self._glance)

    def _mend(self) -> bool:
        """Bring link and rules to the desired state; runs in the worker thread. Returns whether that succeeded."""
        if self._ended:
            return True
        link = self._network.setup_interface
        self.counts.link_present = not link or self._attempt(lambda: ensure_link(self._network), "link")
        self.counts.rules_present = self._attempt(self._switch.ensure_rules, "rules")
        # Not counted as a repair: the ACCEPT rules depend on the rules of other programs in the filter table.
        beside = self._attempt(self._switch.ensure_beside)
        return self.counts.link_present and self.counts.rules_present and beside

    def _attempt(self, ensure: Callable[[], bool], what: str = "") -> bool:
        """Call `ensure`. Returns whether it succeeded; if it changed something, `what` is counted as repaired."""
        try:
            changed = ensure()
        except HostNetworkError as problem:
            self._note(problem)
            return False
        if changed and what:
            self.counts.repaired[what] += 1
            self.counts.last_repair[what] = time.time()
            log.warning("added back the %s of the node cache, which somebody had changed", what)
        return True

    def _note(self, problem: HostNetworkError) -> None:
        self.counts.errors[problem.kind] += 1
        if problem.text != self._told:
            log.error("network of this node: %s", problem.text)
        self._told = problem.text

    def _make_switch(self, beside: bool) -> None:
        self._switch = make_switch(self._network, self.firewall, self._heartbeat, beside)
        self._switch_made = True

    def _remove_rules(self, deadline: float) -> list[str]:
        """Remove the rules; runs in the worker thread, after any unfinished work of a start that was cut short."""
        if not self._switch_made:
            try:
                self._make_switch(beside=False)
            except HostNetworkError as problem:
                return [problem.text]
        return self._switch.remove(deadline)

    async def _port_is_taken(self) -> bool:
        return self._port.is_taken(await self._beside(self._port.look))

    def _remove_link(self) -> list[str]:
        try:
            remove_link(self._network, adopted=self.has_begun)
        except HostNetworkError as problem:
            return [problem.text]
        return []

    async def _counted(self, act: Callable[[], Result]) -> Result:
        try:
            return await self._beside(act)
        except HostNetworkError as problem:
            self.counts.errors[problem.kind] += 1
            raise

    async def _bounded(self, what: str, remove: Callable[[], list[str]]) -> bool:
        try:
            async with asyncio.timeout(TEARDOWN_PATIENCE):
                left = await self._beside(remove)
        except TimeoutError:
            left = [f"not done within {TEARDOWN_PATIENCE:g} s"]
        except Exception:  # a bug must not prevent the rest of the teardown
            log.exception("removing the %s of the node cache", what)
            return False
        for problem in left:
            log.error("left behind of the %s of the node cache: %s", what, problem)
        return not left

    async def _beside(self, act: Callable[[], Result]) -> Result:
        """Run `act` in the worker thread, after everything that is queued there."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, act)
