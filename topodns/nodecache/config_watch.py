"""Watches the files of node-cache's Corefile, and keeps the last Corefile that can be served.

Reading, rendering and change notification are passed in: the module knows neither Corefiles nor inotify. A ConfigMap
volume changes by a symlink swap, which is left to the notifications; here the contents are compared.
"""

import logging
import time
from collections.abc import AsyncIterable, Callable, Collection

from topodns.files.regular import write_text
from topodns.nodecache.settings import NodeConfigTexts, RenderedCorefile

log = logging.getLogger(__name__)


class NodeConfigWatch:
    """Holds the Corefile in force: `load` once, then `run`. `changed` is called with each new one after the first.

    An invalid Corefile does not replace the one in force, and is logged and counted once as long as its problems stay
    the same. It is tried again at every element of `changes`, as an imported file may have been fixed.
    """

    text: str = ""  # of the last valid Corefile
    accepted_at: float = 0.0  # the time of its acceptance, in Unix seconds
    setup_errors: int = 0  # coredns_nodecache_setup_errors_total{errortype="configmap"}

    def __init__(
        self,
        read: Callable[[], NodeConfigTexts],
        render: Callable[[NodeConfigTexts], RenderedCorefile],
        changed: Callable[[str], object],
        copy: str = "",
    ) -> None:
        """`copy` is the path of a copy of each Corefile made of a template, for inspection by people; "" for none."""
        self._read = read
        self._render = render
        self._changed = changed
        self._copy = copy
        self._seen: NodeConfigTexts | None = None
        self._logged_problems: tuple[str, ...] = ()  # the problems of the texts seen last, as logged
        self._logged_copy_error = ""  # the error of writing the copy that was logged last

    def load(self) -> RenderedCorefile:
        """Read the files. Returns the Corefile to start with; if it has problems, there is nothing to serve.

        An invalid kube-dns ConfigMap is left out, so that a node has DNS (as NodeLocal DNSCache): its stub domains and
        upstreams are missing until it is fixed.
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
        if self._seen.without_template:
            log.info("node-cache: there is no template, so %s is served as it is", self._seen.template.path)
        self._accept(rendered.text)
        return rendered

    @property
    def in_force(self) -> bool:
        """Whether `text` is made of the contents of the files as read last."""
        return not self._logged_problems

    async def run(self, changes: AsyncIterable[Collection[str]]) -> None:
        """Read the files again at each element of `changes`, whatever its value, until `changes` ends."""
        async for _ in changes:
            self._read_again()

    def _read_again(self) -> None:
        texts = self._read()
        if texts == self._seen and not self._logged_problems:
            return
        self._seen = texts
        rendered = self._render(texts)
        if rendered.problems:
            self._refuse(rendered.problems, "the configuration before it stays in force")
            return
        if self._logged_problems:
            log.info("node-cache: the configuration can be served again")
        self._logged_problems = ()
        if rendered.text != self.text:
            self._accept(rendered.text)
            log.info("node-cache: configuration changed, taking it over")
            self._changed(rendered.text)

    def _refuse(self, problems: tuple[str, ...], instead: str) -> None:
        if problems == self._logged_problems:
            return
        self._logged_problems = problems
        self.setup_errors += 1
        for problem in problems:
            log.error("node-cache: %s; %s", problem, instead)

    def _accept(self, text: str) -> None:
        self.text, self.accepted_at = text, time.time()
        if self._copy and self._seen is not None and not self._seen.without_template:
            self._write_copy(text)

    def _write_copy(self, text: str) -> None:
        """Write the copy. It is not served, so an error is only logged, once as long as its reason stays the same."""
        try:
            write_text(self._copy, text)
        except OSError as problem:
            why = problem.strerror or str(problem)
            if why != self._logged_copy_error:
                log.warning("node-cache: cannot write %s: %s; the Corefile is served all the same", self._copy, why)
            self._logged_copy_error = why
