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
from topodns.hostnet.instances import InstanceRegistry
from topodns.hostnet.link import ensure_link, remove_link
from topodns.hostnet.monitor import link_monitor, rule_monitor
from topodns.hostnet.node_checks import check_node
from topodns.hostnet.port_watch import PortWatch
from topodns.hostnet.redirect import NoRedirect, Redirect, find_firewall, make_redirect
from topodns.hostnet.rules import REDIRECT_SECONDS, Firewall, HostNetwork

log = logging.getLogger(__name__)


CHECK_INTERVAL: Final = 0.15  # seconds between two checks that the rules exist; each costs some microseconds
MAX_SYNC_INTERVAL: Final = 4.5  # seconds between two comparisons with the desired state: a repair takes up to 5
REPAIRABLE: Final = ("link", "rules")
TEARDOWN_PATIENCE: Final = 4.0  # seconds that removing the rules, or the link, may take

_FIRST_RETRY: Final = 0.1  # seconds, doubled up to MAX_SYNC_INTERVAL
_RULES_PATIENCE: Final = 2.0  # seconds after which no further program is started; one program may take another 2

Result = TypeVar("Result")


@dataclass(slots=True)
class HostNetworkCounts:
    """State and counters for metrics. `repaired` and `last_repair`: by "link" and "rules"; `errors`: by ErrorKind."""

    link_present: bool = False
    rules_present: bool = False
    last_repair: dict[str, float] = field(default_factory=lambda: dict.fromkeys(REPAIRABLE, 0.0))  # Unix s; 0: never
    repaired: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)


class HostNetworkReconciler:
    """The reconciler, one per process. Call all methods in the event loop's thread."""

    def __init__(self, network: HostNetwork, heartbeat: int | None = None) -> None:
        """`heartbeat`: `watchdog_launch.heartbeat_fd()`."""
        self.counts = HostNetworkCounts()
        self.firewall = network.firewall  # the one in use, once `set_up_rules` has chosen it
        self._network, self._heartbeat = network, heartbeat
        self._redirect: Redirect = NoRedirect()
        self.instance_registry = InstanceRegistry(network.interface)
        self._port = PortWatch(network, self.instance_registry)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="host-network")
        self._wake = asyncio.Event()
        self._next_check: asyncio.TimerHandle | None = None
        self._renewed: float | None = None
        self._logged_error = ""  # the error that was logged last
        self._ended = self._handed_over = False
        self.has_begun = False  # to change anything; until then link and rules are of an earlier process or of others
        self._redirect_made = False

    async def set_up_link(self) -> None:
        """If `setup_interface`: create or adopt the link, bring it up, add its addresses. Raises HostNetworkError."""
        self.has_begun = True
        if self._network.setup_interface:
            await self._counted(lambda: ensure_link(self._network))
            self.counts.link_present = True

    async def set_up_rules(self) -> tuple[str, ...]:
        """Choose the firewall and set its rules. A redirect that another instance keeps on stays on, else it is off.

        Returns notices about this node for the log. Raises HostNetworkError.
        """
        self.has_begun = True
        self.firewall = await self._counted(lambda: find_firewall(self._network))
        already_on = self.instance_registry.successor() is not None
        await self._counted(lambda: self._make_redirect(already_on))
        await self._counted(self._redirect.ensure_rules)
        self.counts.rules_present = True
        await self._in_worker(lambda: self._attempt(self._redirect.ensure_accept_rules))
        return await self._in_worker(check_node) if self.firewall is not Firewall.NONE else ()

    def renew(self) -> bool:
        """Redirect traffic here for at most REDIRECT_SECONDS from now. Takes some microseconds and never blocks.

        Returns False if the rules are missing; their repair is started, so call again after the usual interval.
        """
        present = self._redirect.renew()
        if present:
            self._renewed = time.monotonic()
        else:
            self._wake.set()
        return present

    def port_sockets(self) -> dict[str, int] | None:
        """The number of other processes' sockets at our port, as `PortWatch.counts`; None if unknown."""
        return self._port.counts

    def is_redirecting(self) -> bool:
        """Whether traffic is redirected here, by the last successful `renew`."""
        return self._renewed is not None and time.monotonic() - self._renewed < REDIRECT_SECONDS

    async def run(self) -> Never:
        """Compare and repair until cancelled: periodically, and at once after a netlink event or a failed `renew`.

        The period is `HostNetwork.sync_interval`, at most MAX_SYNC_INTERVAL.
        """
        monitors = [link_monitor(self._network)]
        if (rules := rule_monitor(self.firewall)) is not None:
            monitors.append(rules)
        for monitor in monitors:
            monitor.start(self._wake.set)
        self._check()
        self._wake.set()  # another instance may have removed something before the monitors started
        retry = _FIRST_RETRY
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(MAX_SYNC_INTERVAL, self._network.sync_interval)):
                        await self._wake.wait()
                self._wake.clear()
                self._port.update(await self._in_worker(self._port.list_sockets))
                if await self._in_worker(self._repair):
                    retry = _FIRST_RETRY
                else:
                    await asyncio.sleep(retry)
                    retry = min(2 * retry, MAX_SYNC_INTERVAL)
        finally:
            if self._next_check is not None:
                self._next_check.cancel()
            for monitor in monitors:
                monitor.stop()

    async def release(self, has_successor: bool) -> bool:
        """Stop redirecting queries here, unless another instance takes over; `remove` then keeps link and rules.

        One takes over if it serves and `has_successor`: another server has also answered a probe. If this process has
        changed nothing (not `has_begun`), it is instead enough that one serves or that the port is in use.

        Returns whether that worked. Queries that arrived before can still be answered; `remove` comes next. Takes
        TEARDOWN_PATIENCE at most and raises nothing. Cancel `run` before.
        """
        self._ended = True
        self._renewed, self.counts.rules_present = None, False
        another_serves = self.instance_registry.end()
        if self.has_begun:
            self._handed_over = another_serves and has_successor
        else:
            self._handed_over = another_serves or await self._port_is_taken()
        if self._handed_over:
            log.info("another process serves the listen addresses: link and rules stay")
            self._redirect.hand_over()
            self._redirect.close()
            return True
        return await self._bounded("rules", self._redirect.release)

    async def remove(self) -> bool:
        """Unless another instance takes over (`release`), remove the rules and, if `setup_interface`, the link.

        From a link that is not ours only our addresses are removed. Call this last, after `release`. Returns whether no
        removal failed. Takes TEARDOWN_PATIENCE at most for rules and for link, and raises nothing.
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

    def leave(self, has_successor: bool) -> None:
        """Instead of `release` and `remove`: keep link and rules, but stop the redirect unless another instance serves
        and `has_successor` (another server has also answered a probe).
        """
        self._ended = True
        if self.instance_registry.end() and has_successor:
            self._redirect.hand_over()
        else:
            self._redirect.expire()
        self._redirect.close()
        self._thread.shutdown(wait=False)

    def _check(self) -> None:
        """Poll the other instances, and wake `run` if the rules are missing: now and every CHECK_INTERVAL seconds.

        A timer, since a task that sleeps costs several times as much.
        """
        self.instance_registry.poll()
        if not self._redirect.present():
            self.counts.rules_present = False
            self._wake.set()
        self._next_check = asyncio.get_running_loop().call_later(CHECK_INTERVAL, self._check)

    def _repair(self) -> bool:
        """Bring link and rules to the desired state; runs in the worker thread. Returns whether all of it succeeded.

        Does nothing after `release` or `leave`.
        """
        if self._ended:
            return True
        link = self._network.setup_interface
        self.counts.link_present = not link or self._attempt(lambda: ensure_link(self._network), "link")
        self.counts.rules_present = self._attempt(self._redirect.ensure_rules, "rules")
        # Not counted as a repair: the ACCEPT rules depend on the rules of other programs in the filter table.
        accepted = self._attempt(self._redirect.ensure_accept_rules)
        return self.counts.link_present and self.counts.rules_present and accepted

    def _attempt(self, ensure: Callable[[], bool], what: str = "") -> bool:
        """Call `ensure`. Returns whether it succeeded; a HostNetworkError is counted and logged.

        If it changed something, `what` is counted as repaired, unless it is "".
        """
        try:
            changed = ensure()
        except HostNetworkError as problem:
            self._count_error(problem)
            return False
        if changed and what:
            self.counts.repaired[what] += 1
            self.counts.last_repair[what] = time.time()
            log.warning("added back the %s of the node cache, which another program had changed", what)
        return True

    def _count_error(self, problem: HostNetworkError) -> None:
        self.counts.errors[problem.kind] += 1
        if problem.text != self._logged_error:
            log.error("network of this node: %s", problem.text)
        self._logged_error = problem.text

    def _make_redirect(self, already_on: bool) -> None:
        self._redirect = make_redirect(self._network, self.firewall, self._heartbeat, already_on)
        self._redirect_made = True

    def _remove_rules(self, deadline: float) -> list[str]:
        """Remove the rules; runs in the worker thread, after any unfinished work of a start that was cut short.

        Returns leftovers, a line each.
        """
        if not self._redirect_made:
            try:
                self._make_redirect(already_on=False)
            except HostNetworkError as problem:
                return [problem.text]
        return self._redirect.remove(deadline)

    async def _port_is_taken(self) -> bool:
        return self._port.is_taken(await self._in_worker(self._port.list_sockets))

    def _remove_link(self) -> list[str]:
        try:
            remove_link(self._network, adopted=self.has_begun)
        except HostNetworkError as problem:
            return [problem.text]
        return []

    async def _counted(self, act: Callable[[], Result]) -> Result:
        try:
            return await self._in_worker(act)
        except HostNetworkError as problem:
            self.counts.errors[problem.kind] += 1
            raise

    async def _bounded(self, what: str, remove: Callable[[], list[str]]) -> bool:
        try:
            async with asyncio.timeout(TEARDOWN_PATIENCE):
                left = await self._in_worker(remove)
        except TimeoutError:
            left = [f"not done within {TEARDOWN_PATIENCE:g} s"]
        except Exception:  # a bug must not prevent the rest of the teardown
            log.exception("removing the %s of the node cache", what)
            return False
        for problem in left:
            log.error("left behind of the %s of the node cache: %s", what, problem)
        return not left

    async def _in_worker(self, act: Callable[[], Result]) -> Result:
        """Run `act` in the worker thread, after everything that is queued there."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, act)
