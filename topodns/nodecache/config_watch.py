"""Follows the files that node-cache's Corefile is made of, and keeps the last one that can be served.

Is given how to read the files and what they mean, and when to look again: knows neither Corefiles nor the file system's
notifications. That a ConfigMap volume changes by a flipped link is the notifications' matter; what is read is compared.
"""

import logging
import time
from collections.abc import AsyncIterable, Callable, Collection

from topodns.edge.regular_file import write_text
from topodns.settings.node_cache import NodeConfigTexts, RenderedCorefile

log = logging.getLogger(__name__)


class NodeConfigWatch:
    """Holds the Corefile in force: `load` once, then `run`. `changed` is called with each new one after the first.

    What cannot be served leaves it in place, is logged, and counted once for each different set of problems. It is
    tried again at every look, for what it imports may have been mended.
    """

    text: str = ""  # the last Corefile that could be served
    taken_at: float = 0.0  # when that was, in Unix seconds
    setup_errors: int = 0  # coredns_nodecache_setup_errors_total{errortype="configmap"}

    def __init__(
        self,
        read: Callable[[], NodeConfigTexts],
        render: Callable[[NodeConfigTexts], RenderedCorefile],
        changed: Callable[[str], object],
        copy: str = "",
    ) -> None:
        """`copy` is the file that each Corefile is written to for people to look at, "" none."""
        self._read = read
        self._render = render
        self._changed = changed
        self._copy = copy
        self._seen: NodeConfigTexts | None = None
        self._told: tuple[str, ...] = ()  # what is wrong with the texts that were seen last
        self._not_written = ""  # why the copy could not be written, as it was logged last

    def load(self) -> RenderedCorefile:
        """What to start with. With problems there is nothing to serve.

        A bad kube-dns ConfigMap does not keep a node without DNS (as NodeLocal DNSCache): its stub domains and
        upstreams are missing until it is mended.
        """
        self._seen = self._read()
        rendered = self._render(self._seen)
        if rendered.problems:
            bare = self._render(self._seen.without_kube_dns())
            if bare.problems:
                self.setup_errors += 1
                return bare
            self._refuse(rendered.problems, "starting without the kube-dns ConfigMap")
            rendered = bare
        self._accept(rendered.text)
        return rendered

    @property
    def in_force(self) -> bool:
        """Whether what the files said at the last look is what `text` was made of."""
        return not self._told

    async def run(self, changes: AsyncIterable[Collection[str]]) -> None:
        """Look whenever `changes` has an element, whatever it is, for as long as it goes on."""
        async for _ in changes:
            self._look()

    def _look(self) -> None:
        texts = self._read()
        if texts == self._seen and not self._told:
            return
        self._seen = texts
        rendered = self._render(texts)
        if rendered.problems:
            self._refuse(rendered.problems, "the configuration before it stays in force")
            return
        if self._told:
            log.info("node-cache: the configuration can be served again")
        self._told = ()
        if rendered.text != self.text:
            self._accept(rendered.text)
            log.info("node-cache: configuration changed, taking it over")
            self._changed(rendered.text)

    def _refuse(self, problems: tuple[str, ...], instead: str) -> None:
        if problems == self._told:
            return
        self._told = problems
        self.setup_errors += 1
        for problem in problems:
            log.error("node-cache: %s; %s", problem, instead)

    def _accept(self, text: str) -> None:
        self.text, self.taken_at = text, time.time()
        if self._copy:
            self._write_copy(text)

    def _write_copy(self, text: str) -> None:
        """Nothing is served from it, so that a read-only file system is no fault."""
        try:
            write_text(self._copy, text)
        except OSError as problem:
            why = problem.strerror or str(problem)
            if why != self._not_written:
                log.warning("node-cache: cannot write %s: %s; the Corefile is served all the same", self._copy, why)
            self._not_written = why
