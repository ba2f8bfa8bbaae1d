"""The log of problems of the clusters' objects: topology keys, EndpointSlices, locators, and objects left out.

Problems that users should see at their Service also go to `kube.events`. Cluster modules are not imported at run time,
as a Corefile may have no cluster.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from topodns.time_slices import in_slices

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.clusters import Cluster
    from topodns.topology.findings import Finding

log = logging.getLogger(__name__)

CHECK_AFTER: Final = 0.5  # seconds: once for a burst of changes


class ProblemLog:
    """Logs each problem of the clusters once, when it appears; a problem that was fixed and comes back is logged again.

    `run` makes a first check of all objects, and another one soon after each `rouse`, in slices of time between
    queries, as there may be thousands of problems. A change during a check calls `rouse`, so that a further check sees
    it.
    """

    def __init__(self) -> None:
        self.clusters: Sequence[Cluster] = ()
        self._due = asyncio.Event()
        self._checks = 0
        self._lines: dict[str, int] = {}  # of present problems -> the number of the last check that found it

    def rouse(self) -> None:
        """Have `run` make another check, as a state has changed."""
        self._due.set()

    async def run(self) -> None:
        """Make checks until cancelled; without a `rouse` while EndpointSlices or locators are still to be compared."""
        self._due.set()
        while True:
            await self._due.wait()
            await asyncio.sleep(CHECK_AFTER)
            self._due.clear()
            await in_slices(self.check())
            if any(cluster.feed.checking for cluster in self.clusters):
                self._due.set()

    def check(self) -> Iterator[None]:
        """Log the new problems of all clusters, and give all findings to the recorder of Events; in small steps."""
        self._checks += 1
        for cluster in self.clusters:
            findings: list[Finding] = []
            for found in cluster.findings():
                if found is not None:
                    findings.append(found)
                    self._note(str(found), logging.INFO if found.severity == "info" else logging.WARNING)
                yield
            for line in cluster.notices():
                self._note(line)
                yield
            if cluster.feed.event_recorder is not None:
                cluster.feed.event_recorder.report(findings)
        yield from self._forget_the_fixed()

    def _note(self, line: str, level: int = logging.WARNING) -> None:
        if line not in self._lines:
            log.log(level, "plugin/topology: %s", line)
        self._lines[line] = self._checks

    def _forget_the_fixed(self) -> Iterator[None]:
        """Forget the problems that this check did not find, so that they are logged when they come back."""
        for line in list(self._lines):
            if self._lines[line] != self._checks:
                del self._lines[line]
            yield
