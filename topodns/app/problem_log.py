"""The log of what is wrong with topology keys, EndpointSlices and locators, and the Events about keys.

It imports no cluster module at run time: a Corefile may have no cluster.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from topodns.time_slices import in_slices

if TYPE_CHECKING:
    from topodns.app.clusters import Cluster
    from topodns.topology.findings import Finding

log = logging.getLogger(__name__)

LOOK_AFTER: Final = 0.5  # seconds: once for a burst of changes


class ProblemLog:
    """Logs the problems of some clusters that are new, in slices of time between queries: there may be thousands.

    `run` looks for them once when it starts, and soon after each `rouse`. A Service that changes while it looks is
    taken as it is when its turn comes, and as it is in the end by the look that its change has caused.
    """

    def __init__(self) -> None:
        self.clusters: Sequence[Cluster] = ()
        self._due = asyncio.Event()
        self._looks = 0
        self._lines: dict[str, int] = {}  # of present problems -> the look that has found it last

    def rouse(self) -> None:
        """Have `run` look once more, as a state has changed."""
        self._due.set()

    async def run(self) -> None:
        """Look until cancelled; again and again while EndpointSlices or locators are still to be checked."""
        self._due.set()
        while True:
            await self._due.wait()
            await asyncio.sleep(LOOK_AFTER)
            self._due.clear()
            await in_slices(self.look())
            if any(cluster.feed.checking for cluster in self.clusters):
                self._due.set()

    def look(self) -> Iterator[None]:
        """Log the new problems of all clusters, and report those of keys, new or not, for Events; in small steps."""
        self._looks += 1
        for cluster in self.clusters:
            findings: list[Finding] = []
            for found in cluster.findings():
                if found is not None:
                    findings.append(found)
                    self._note(str(found))
                yield
            for line in cluster.notices():
                self._note(line)
                yield
            if cluster.feed.event_recorder is not None:
                cluster.feed.event_recorder.report(findings)
        yield from self._forget_the_fixed()

    def _note(self, line: str) -> None:
        if line not in self._lines:
            log.warning("plugin/topology: %s", line)
        self._lines[line] = self._looks

    def _forget_the_fixed(self) -> Iterator[None]:
        """Forget what this look has not found, so that it is logged when it comes back."""
        for line in list(self._lines):
            if self._lines[line] != self._looks:
                del self._lines[line]
            yield
