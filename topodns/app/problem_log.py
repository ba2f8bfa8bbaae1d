"""The log of problems of the clusters' objects: topology keys, EndpointSlices, locators, and objects left out.

Problems that users should see at their Service also go to `kube.events`. Cluster modules are not imported at run time,
as a Corefile may have no cluster.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from topodns.time_slices import in_slices

if TYPE_CHECKING:
    from topodns.cluster.findings.finding import Finding
    from topodns.plugins.kubernetes.clusters import Cluster

log = logging.getLogger(__name__)

CHECK_AFTER: Final = 0.5  # seconds: once for a burst of changes
LASTS: Final = 60.0  # seconds; Pods of a deleted Node, with their endpoints, are deleted after 40 to 60 (PodGC)


class ProblemLog:
    """Logs each problem of the clusters once, when it appears; a problem that was fixed and comes back is logged again.

    One that the watches of several kinds may bring about for a moment (`Finding.may_pass`) counts from LASTS on.

    `run` makes a first check of all objects, and another one soon after each `rouse`, in slices of time between
    queries, as there may be thousands of problems. A change during a check calls `rouse`, so that a further check sees
    it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds, as that of the event loop."""
        self.clusters: Sequence[Cluster] = ()
        self._clock = clock
        self._due = asyncio.Event()
        self._checks = 0
        self._lines: dict[str, int] = {}  # of present problems -> the number of the last check that found it
        self._may_pass: dict[str, tuple[int, float]] = {}  # as `_lines`, and when each was first found

    def rouse(self) -> None:
        """Have `run` make another check, as a state has changed."""
        self._due.set()

    async def run(self) -> None:
        """Make checks until cancelled; without a `rouse` while EndpointSlices or locators are still to be compared."""
        self._due.set()
        while True:
            await self._wait()
            await asyncio.sleep(CHECK_AFTER)
            self._due.clear()
            await in_slices(self.check())
            if any(cluster.feed.checking for cluster in self.clusters):
                self._due.set()

    async def _wait(self) -> None:
        """Wait until a check is due: for a `rouse`, or for a problem that has lasted."""
        first = min((since for _, since in self._may_pass.values() if since > self._clock() - LASTS), default=None)
        with suppress(TimeoutError):
            async with asyncio.timeout(first + LASTS - self._clock() if first is not None else None):
                await self._due.wait()

    def check(self) -> Iterator[None]:
        """Log the new problems of all clusters, and give all findings to the recorder of Events; in small steps."""
        self._checks += 1
        for cluster in self.clusters:
            findings: list[Finding] = []
            for found in cluster.findings():
                if found is not None and self._counts(found, cluster):
                    findings.append(found)
                    self._note(str(found), logging.INFO if found.severity == "info" else logging.WARNING)
                yield
            for line in cluster.notices():
                self._note(line)
                yield
            if cluster.feed.event_recorder is not None:
                cluster.feed.event_recorder.report(findings)
        yield from self._forget_the_fixed()

    def _counts(self, found: "Finding", cluster: "Cluster") -> bool:
        """Whether this is a problem, and not one that may pass and has not lasted. Manifests are read as a whole."""
        if not found.may_pass or not cluster.feed.arrives_late:
            return True
        line = str(found)
        _, since = self._may_pass.get(line, (0, self._clock()))
        self._may_pass[line] = self._checks, since
        return self._clock() - since >= LASTS

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
        for line, (check, _) in list(self._may_pass.items()):
            if check != self._checks:
                del self._may_pass[line]
            yield
