"""Keeps the node's network as a node cache needs it: what the program uses of this package.

The order is the caller's: listen (with IP_FREEBIND, so that it comes first), `set_up_link`, `set_up_rules`, and then
`renew` after each answer to a question that it asked itself. From then on traffic comes. `run` mends what others break.
At the end `release`, let go of what is in flight, `remove`.

What waits for programs or for the kernel's locks runs in one thread beside the loop, one after the other.
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

from topodns.edge.host_network.errors import HostNetworkError
from topodns.edge.host_network.link import ensure_link, remove_link
from topodns.edge.host_network.notices import look
from topodns.edge.host_network.plan import SWITCH_SECONDS, HostNetwork
from topodns.edge.host_network.presence import Presence
from topodns.edge.host_network.switch import NoSwitch, Switch, choose_firewall, make_switch
from topodns.edge.host_network.watch import watch_link, watch_rules
from topodns.settings.node_cache import Firewall

GLANCE: Final = 0.15  # seconds between two looks at whether the rules are there; each costs some microseconds
TICK: Final = 4.5  # seconds at most between two comparisons of all with all that is wished, so that 5 are enough
MENDED: Final = ("link", "rules")
TEARDOWN_PATIENCE: Final = 4.0  # seconds that taking away the rules, or the link, may take

_FIRST_RETRY: Final = 0.1  # seconds, doubled up to TICK
_RULES_PATIENCE: Final = 2.0  # seconds after which no further program is started; one may take as long itself

Result = TypeVar("Result")

log = logging.getLogger(__name__)


@dataclass(slots=True)
class HostNetworkCounts:
    """For metrics. `repaired` and `last_repair` are by "link" and "rules", `errors` by ErrorKind."""

    link_present: bool = False
    rules_present: bool = False
    last_repair: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MENDED, 0.0))  # Unix seconds; 0: never
    repaired: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)


class HostNetworkKeeper:
    """One for a process. Every method is for the thread of the loop."""

    def __init__(self, network: HostNetwork, heartbeat: int | None = None) -> None:
        """`heartbeat` is `supervised.heartbeat_fd()`."""
        self.counts = HostNetworkCounts()
        self.firewall = network.firewall  # what is used, once the rules were set up
        self._network, self._heartbeat = network, heartbeat
        self._switch: Switch = NoSwitch()
        self.presence = Presence(network.interface)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="host-network")
        self._wake = asyncio.Event()
        self._next_glance: asyncio.TimerHandle | None = None
        self._renewed: float | None = None
        self._told = ""  # the error that was logged last
        self._ended = self._handed_over = False
        self._has_link = False  # that is ours to take away

    async def set_up_link(self) -> None:
        """The link, up and with its addresses, adopted if it is there. Raises HostNetworkError."""
        if self._network.setup_interface:
            self._has_link = True
            await self._counted(lambda: ensure_link(self._network))
            self.counts.link_present = True

    async def set_up_rules(self) -> tuple[str, ...]:
        """The rules, with the switch as it is found, or off. Returns notices for the log. Raises HostNetworkError."""
        self.firewall = await self._counted(lambda: choose_firewall(self._network))
        beside = self.presence.successor() is not None
        self._switch = await self._counted(lambda: make_switch(self._network, self.firewall, self._heartbeat, beside))
        await self._counted(self._switch.ensure_rules)
        self.counts.rules_present = True
        await self._beside(lambda: self._attempt(self._switch.ensure_beside))
        return await self._beside(look) if self.firewall is not Firewall.NONE else ()

    def renew(self) -> bool:
        """On for SWITCH_SECONDS. Some microseconds, and no waiting.

        Returns False where the rules are not there: they are being mended, call again when it is time.
        """
        there = self._switch.renew()
        if there:
            self._renewed = time.monotonic()
        else:
            self._wake.set()
        return there

    def switched_on(self) -> bool:
        """Whether traffic comes to us."""
        return self._renewed is not None and time.monotonic() - self._renewed < SWITCH_SECONDS

    async def run(self) -> Never:
        """Mend for ever."""
        watches = [watch_link(self._network)]
        if (rules := watch_rules(self.firewall)) is not None:
            watches.append(rules)
        for watch in watches:
            watch.start(self._wake.set)
        self._glance()
        self._wake.set()  # another instance may have taken something away before anybody watched
        retry = _FIRST_RETRY
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(TICK, self._network.sync_interval)):
                        await self._wake.wait()
                self._wake.clear()
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
        """Lead nobody here any more, unless another instance has `succeeded` this one. Returns whether that was done.

        What came before can still be answered; `remove` comes next. Takes TEARDOWN_PATIENCE at most, and raises
        nothing. End `run` before.
        """
        self._ended = True
        self._renewed, self.counts.rules_present = None, False
        self._handed_over = self.presence.end() and succeeded
        if self._handed_over:
            log.info("another instance serves this node: its link and rules stay")
            self._switch.hand_over()
            self._switch.close()
            return True
        return await self._bounded("rules", self._switch.release)

    async def remove(self) -> bool:
        """Take away the rules and the link, or where it is not ours its addresses; then nothing can be called any more.

        Returns whether nothing of ours was left behind. The same promises as for `release`, after which it comes.
        """
        removed = True
        if not self._handed_over:
            deadline = time.monotonic() + _RULES_PATIENCE
            removed = await self._bounded("rules", lambda: self._switch.remove(deadline))
            if self._has_link:
                self.counts.link_present = False
                removed &= await self._bounded("link", self._remove_link)
        self._thread.shutdown(wait=False)
        return removed

    def leave(self, succeeded: bool) -> None:
        """Instead of the two: what stands stays, and is switched off unless another instance has `succeeded`."""
        self._ended = True
        if self.presence.end() and succeeded:
            self._switch.hand_over()
        else:
            self._switch.expire()
        self._switch.close()
        self._thread.shutdown(wait=False)

    def _glance(self) -> None:
        """Now, and again until `run` ends. A timer, since a task that sleeps costs several times as much."""
        if not self._switch.present():
            self.counts.rules_present = False
            self._wake.set()
        self._next_glance = asyncio.get_running_loop().call_later(GLANCE, self._glance)

    def _mend(self) -> bool:
        """In the thread: everything as it is wished. Returns whether it is."""
        if self._ended:
            return True
        link = self._network.setup_interface
        self.counts.link_present = not link or self._attempt(lambda: ensure_link(self._network), "link")
        self.counts.rules_present = self._attempt(self._switch.ensure_rules, "rules")
        # No repair: whether something has to be accepted changes with what others have in that table.
        beside = self._attempt(self._switch.ensure_beside)
        return self.counts.link_present and self.counts.rules_present and beside

    def _attempt(self, ensure: Callable[[], bool], what: str = "") -> bool:
        """Returns whether it succeeded; `what` is what was mended, where something had to be."""
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

    def _remove_link(self) -> list[str]:
        try:
            remove_link(self._network)
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
        except Exception:  # whatever it is, the rest of the way down must be walked
            log.exception("removing the %s of the node cache", what)
            return False
        for problem in left:
            log.error("left behind of the %s of the node cache: %s", what, problem)
        return not left

    async def _beside(self, act: Callable[[], Result]) -> Result:
        """Do it in the thread, behind everything that is being done there."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, act)
