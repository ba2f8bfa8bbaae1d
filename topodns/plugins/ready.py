"""The `ready` plugin: the address of /ready, and whether its answer is 200 or 503."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from topodns.corefile.arguments import Address, fold_options, listen_address, only_choice
from topodns.corefile.parser import Directive
from topodns.net.http_server.messages import HttpReply, HttpRequest
from topodns.plugins.compatibility import same
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.clusters import Cluster

log = logging.getLogger(__name__)

LOCATORS_WAIT: Final = 60.0  # seconds for which a server that is complete otherwise waits for locators
DEFAULT_LISTEN: Final = Address("", 8181)


@dataclass(frozen=True, slots=True)
class Ready:
    listen: Address = DEFAULT_LISTEN
    continuously: bool = False  # `monitor continuously`; otherwise the server stays ready once it is


def parse_ready(directive: Directive, _: Context) -> Ready:
    def monitor(option: Directive, ready: Ready) -> Ready:
        continuously = only_choice(option, {"until-ready": False, "continuously": True})
        return replace(ready, continuously=continuously)

    return fold_options(directive, Ready(listen_address(directive, Ready().listen)), {"monitor": monitor})


def unready(clusters: Iterable["Cluster"]) -> Iterator[str]:
    """Reasons for not being ready: a line for each unsynced cluster and for each kind that topology lacks."""
    for cluster in clusters:
        if not cluster.state.is_covered:
            yield f"kubernetes: waiting for {', '.join(cluster.waiting_for())}"
        for line in cluster.lacks():
            with_topology = cluster.topology is not None
            yield f"kubernetes: topology lacks {line}" if with_topology else f"kubernetes: metadata lacks {line}"


def from_snapshots(clusters: Iterable["Cluster"]) -> Iterator[str]:
    """A line for each cluster whose answers are from a snapshot."""
    for cluster in clusters:
        if line := cluster.from_snapshot():
            yield f"kubernetes: {line}"


def without_locators(clusters: Iterable["Cluster"]) -> Iterator[str]:
    """A line for each cluster whose clients need locators that do not exist yet."""
    for cluster in clusters:
        if missing := cluster.missing_locators():
            yield f"kubernetes: waiting for {missing}"


class Readiness:
    """The answers of /ready, at all its addresses and over reloads.

    503 with the reasons, a line each, until a request finds none; then 200 for good, or with `monitor continuously`
    until there is a reason again. 503 in any case once the server stops. A 200 says from which snapshots answers are.
    `waits_for`: reasons beside those of clusters.

    Missing locators are a reason only before the first 200, and for LOCATORS_WAIT at most: a server in a rolling update
    waits for a controller that starts with it, but a controller that is away keeps no server from starting. `clock` is
    monotonic, in seconds.
    """

    def __init__(self, waits_for: Callable[[], Iterable[str]], clock: Callable[[], float] = time.monotonic) -> None:
        self._waits_for = waits_for
        self._clock = clock
        self._locators_since: float | None = None  # when locators were first the only reason
        self._was_ready = False
        self._stopping = False

    def stop(self) -> None:
        """Answer 503 from now on: the server stops."""
        self._stopping = True

    def route(self, clusters: Collection["Cluster"], continuously: bool) -> Callable[[HttpRequest], HttpReply]:
        """The handler of /ready for a server block, with the clusters of all blocks. `continuously`: its `monitor`."""

        def ready(request: HttpRequest) -> HttpReply:
            return self._reply(clusters, continuously)

        return ready

    def _reply(self, clusters: Collection["Cluster"], continuously: bool) -> HttpReply:
        if self._stopping:
            return HttpReply(503, b"Shutting down")
        reasons = [*self._waits_for(), *unready(clusters)]
        if not reasons and not self._was_ready:
            reasons = self._without_locators(clusters)
        if reasons and (continuously or not self._was_ready):
            return HttpReply(503, "\n".join(reasons).encode())
        self._was_ready = True
        return HttpReply(200, "\n".join(("OK", *from_snapshots(clusters))).encode())

    def _without_locators(self, clusters: Iterable["Cluster"]) -> list[str]:
        """The reasons from `without_locators`, until LOCATORS_WAIT is over; then none, with a line in the log."""
        reasons, now = list(without_locators(clusters)), self._clock()
        if not reasons:
            return []
        self._locators_since = since = now if self._locators_since is None else self._locators_since
        if now < since + LOCATORS_WAIT:
            return reasons
        for line in reasons:
            log.warning("plugin/ready: after %.0f s ready without locators: %s", now - since, line)
        return []


PLUGIN: Final = Plugin(
    name="ready",
    coredns=same(),
    parse=parse_ready,
    in_chain=False,
    fast_path=FastPath.ABSENT,
)
