"""The server process: build, open, serve, reload, drain, stop. Owns every task."""

import asyncio
import gc
import logging
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from topodns.app.admin_endpoints import Admin
from topodns.app.cluster_lifecycle import GARBAGE, NotKnown, end_tasks
from topodns.app.event_loop import run_to_end
from topodns.app.generation import Generation
from topodns.app.hooks import Options, ServerHooks
from topodns.app.listeners import Prepared
from topodns.app.process_metrics import readings_of_the_server
from topodns.app.serving import ServingProcess
from topodns.app.signals import handle_signals
from topodns.corefile.errors import ConfigError
from topodns.corefile.zones import ListenAt
from topodns.files.regular import write_text
from topodns.net.reuseport import share, take_all_again
from topodns.net.sockets import ListenError
from topodns.plugins.block import Settings
from topodns.plugins.forward.setup import PLUGIN as FORWARD
from topodns.plugins.health import PLUGIN as HEALTH
from topodns.plugins.health import lameduck
from topodns.plugins.loop import PLUGIN as LOOP
from topodns.plugins.multisocket import process_count
from topodns.plugins.plugin import AnyPlugin, Plugin, S
from topodns.plugins.pprof import PLUGIN as PPROF
from topodns.plugins.ready import unready, without_locators
from topodns.plugins.reload import PLUGIN as RELOAD
from topodns.plugins.reload import CorefileChecks
from topodns.plugins.setup import FILE_ERRORS
from topodns.query.counters import QueryCounters

if TYPE_CHECKING:
    from topodns.app.workers.pool import WorkerPool

log = logging.getLogger(__name__)


_LABELLESS: Final[tuple[AnyPlugin, ...]] = (FORWARD, LOOP)
"""Plugins whose metrics without labels are there from the start, as in CoreDNS, without their directives as well."""

LoadSettings = Callable[[], Settings]
"""Reads the Corefile again. Raises ConfigError."""


class NotBuilt(Exception):
    """A bug prevented the build of a Corefile that has no error."""


STOP_ERRORS: Final = (NotKnown, NotBuilt, ConfigError, ListenError, *FILE_ERRORS)
"""Errors that prevent serving a Corefile: at the start the program ends, at a reload the old one stays."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """The banner and the pid file, written once all sockets are open."""

    banner: Callable[[Mapping[ListenAt, int], Settings], None]
    pid_file: str = ""


def run(load: LoadSettings, announcement: Announcement, options: Options) -> int:
    """Serve until a stop signal. Returns the exit status: 0, or 1 after a bug in a background task.

    Raises one of STOP_ERRORS, or an error of the hooks, if the start fails.
    """
    return run_to_end(Server(load, announcement, options).run())


class Server(ServingProcess):
    """One run of the server process."""

    def __init__(self, load: LoadSettings, announcement: Announcement, options: Options) -> None:
        super().__init__(options)
        self._load = load
        self._hooks = options.hooks
        self._hook_tasks: list[asyncio.Task[None]] = []
        self._announcement = announcement
        self._metrics.publish(readings_of_the_server(self._events))
        if options.readings is not None:
            self._metrics.publish(options.readings(self._assembly.process.shared))
        self._publish(_LABELLESS)
        self._admin = Admin(
            metrics=self._metrics,
            metrics_listen=options.metrics_listen,
            instance=options.instance,
            waits_for=self._waits_for,
            descriptors=self._descriptors,
            more=(
                options.more_routes(self._page_counters, self._listeners.sample)
                if options.more_routes is not None
                else None
            ),
        )
        self._metrics.publish(self._admin.readings())
        self._stop = asyncio.Event()
        self._at_once = asyncio.Event()
        self._has_failed = False
        self._reloads = asyncio.Event()
        self._checks = CorefileChecks(lambda: load().version, self._reloads.set, self._events.reload_failed, self._rng)
        self._has_cluster_metrics = False
        self._workers: WorkerPool | None = None  # None until a Corefile has `multisocket`

    async def run(self) -> int:
        """Start, serve, stop; returns and raises as `run` of this module."""
        # First: reading a large cluster takes seconds.
        handle_signals(asyncio.get_running_loop(), self._stop, self._at_once, self._reloads)
        gc.set_threshold(GARBAGE)
        try:
            if not await self._unless_stopped(self._begin()):
                await self._clean_up()
                return 1 if self._has_failed else 0
            self._announce()
        except BaseException:
            await self._clean_up()
            raise
        reloading = asyncio.create_task(self._reload_on_request(), name="reload")
        reloading.add_done_callback(self._task_ended)
        await self._stop.wait()
        await end_tasks([reloading])
        await self._shut_down()
        return 1 if self._has_failed else 0

    async def _begin(self) -> None:
        hooks = self._hooks
        await self._activate(self._load())
        if hooks is not None:
            await hooks.begin()
            self._hook_tasks = [self._start(work, name) for work, name in hooks.work()]
            self._hook_tasks.append(self._start(self._reload_for_hooks(hooks), "reload for hooks"))

    async def _reload_for_hooks(self, hooks: ServerHooks) -> None:
        while True:
            await hooks.wants_reload()
            self._reloads.set()

    async def _clean_up(self) -> None:
        """Let the hooks undo a start that failed or was stopped; the end of the process closes the sockets."""
        if self._workers is not None:
            self._workers.kill()
        await self._stop_hooks()
        if self._hooks is not None:
            await self._hooks.after_close()

    async def _stop_hooks(self) -> None:
        """End the tasks of the hooks, then call `before_drain`, which stops new queries from reaching this server."""
        await end_tasks(self._hook_tasks)
        if self._hooks is not None:
            await self._hooks.before_drain()

    async def _unless_stopped(self, starting: Coroutine[None, None, None]) -> bool:
        """Run the start. Returns False if a stop signal cancelled it."""
        start = asyncio.create_task(starting, name="start")
        stop = asyncio.create_task(self._stop.wait(), name="stop")
        await asyncio.wait({start, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not start.done():
            await end_tasks([start])
            return False
        await start
        return True

    async def _activate(self, settings: Settings) -> None:
        """Build a generation and make it the active one, or raise and leave everything as it was.

        A feed that it shares with the previous one is not touched; feeds that it does not use end afterwards.
        """
        generation = self._build(await _with_addresses(settings))
        try:
            await self._clusters.begin(generation)
            prepared = await self._prepare(generation)
        except BaseException:
            await self._clusters.roll_back(generation)
            raise
        await self._switch(prepared)
        self._start_tasks(generation)
        await self._follow_workers(generation)
        for line in (*unready(generation.clusters), *without_locators(generation.clusters)):
            log.warning("plugin/%s", line)
        if _all(generation.settings, PPROF):
            log.warning("plugin/pprof: There are no profiles of Go here, and nothing listens for them")

    async def _follow_workers(self, generation: Generation) -> None:
        """Have the workers of `multisocket` serve this generation as soon as they can: a node cache has none."""
        number = process_count(generation.settings)
        if self._hooks is not None and number > 1:
            log.warning("plugin/multisocket: a node cache is one process; there is no effect")
            return
        if self._workers is None:
            if number == 1:
                return
            # Imported here: a server is one process unless its Corefile says otherwise.
            from topodns.app.workers.pool import WorkerPool

            self._workers = self._metrics.others = WorkerPool(self._start, self._listeners.all_counters)
            self._metrics.publish(self._workers.readings())
        share(self._listeners.sockets())
        self._workers.follow(generation, number, self._listeners.ports())
        if await self._workers.shrink():
            take_all_again(self._listeners.sockets())

    def _waits_for(self) -> Iterator[str]:
        """Reasons for not being ready beside the clusters."""
        if self._hooks is not None:
            yield from self._hooks.waits_for()
        if self._workers is not None:
            yield from self._workers.waits_for()

    def _page_counters(self) -> Iterator[QueryCounters]:
        """The query counters for the topology page: those of this process, and of the workers together."""
        yield from self._listeners.all_counters()
        if self._workers is not None:
            yield self._workers.missed()

    def _build(self, settings: Settings) -> Generation:
        """Build a generation. Nothing has changed yet, so that even a bug (NotBuilt) leaves the old one serving."""
        try:
            generation = self._assemble(settings, self._clusters.feeds)
        except (ConfigError, *FILE_ERRORS):
            raise
        except Exception as problem:
            log.exception("bug: this Corefile could not be built")
            raise NotBuilt(f"a bug of topodns: {problem!r}") from problem
        self._publish_cluster_metrics()
        return generation

    def _publish_cluster_metrics(self) -> None:
        """Add the metrics of clusters, from the first Corefile with a cluster on."""
        maker = self._assembly.cluster_maker
        if maker is not None and not self._has_cluster_metrics:
            # Imported here, as `app.generation` does `plugins.kubernetes.clusters`: a node-cache has no cluster.
            from topodns.plugins.kubernetes.metrics import cluster_readings, policy_steps

            self._metrics.publish(cluster_readings(self._events.clusters, maker))
            self._metrics.count_first(partial(policy_steps, self._events.clusters))
            self._count_distances()
            self._has_cluster_metrics = True

    async def _prepare(self, generation: Generation) -> Prepared:
        """Wait until the clusters of a generation are synced (or time out), then open its sockets and HTTP endpoints.

        At the first start the HTTP endpoints already serve during the wait.
        """
        if self._events.generation is None:
            self._admin.follow(generation)  # /health and /ready answer during the first sync
        await self._clusters.await_known(generation)
        prepared = self._listeners.prepare(generation)
        try:
            self._admin.follow(generation)
        except BaseException:
            prepared.close()
            raise
        return prepared

    def _start_tasks(self, generation: Generation) -> None:
        self._start_for_generation(self._clusters.log_problems(), "problems")
        for work in self._clusters.snapshots():
            self._start_for_generation(work, "snapshot")
        if healths := _all(generation.settings, HEALTH):
            listen = healths[0].listen
            self._start_for_generation(self._events.health.run(listen.host, listen.port), "health")
        for times in filter(None, _all(generation.settings, RELOAD)[:1]):
            log.info("plugin/reload: Running configuration SHA512 = %s", generation.settings.digest)
            self._start_for_generation(self._checks.run(times, generation.settings.version), "corefile")

    def _failed(self, name: str, problem: BaseException) -> None:
        super()._failed(name, problem)
        self._has_failed = True
        self._at_once.set()
        self._stop.set()

    async def _reload_on_request(self) -> None:
        while True:
            await self._reloads.wait()
            self._reloads.clear()
            log.info("Reloading")
            try:
                await self._activate(self._load())
            except STOP_ERRORS as problem:
                self._events.reload_failed(str(problem))
                continue
            log.info("Reloading complete")

    def _announce(self) -> None:
        assert self._events.generation is not None
        if self._announcement.pid_file:
            write_text(self._announcement.pid_file, f"{os.getpid()}\n")
        self._announcement.banner(self._listeners.ports(), self._events.generation.settings)

    async def _shut_down(self) -> None:
        """Become unready, then lameduck (still answering), then drain, then close."""
        self._admin.go_lame()
        await self._stop_hooks()
        generation = self._events.generation
        if generation is not None:
            await lameduck(_all(generation.settings, HEALTH), self._at_once)
        if self._workers is not None:
            await self._workers.close()
        await self._end_tasks()
        await self._clusters.close()
        await self._listeners.close()
        self._close_blocks()
        if self._hooks is not None:
            await self._hooks.after_close()
        self._admin.close()
        self._lines.flush()
        if self._announcement.pid_file:
            with suppress(FileNotFoundError):
                os.unlink(self._announcement.pid_file)


async def _with_addresses(settings: Settings) -> Settings:
    """The settings with the addresses of upstreams in place of their host names. Raises ConfigError."""
    forwards = (forward for block in settings.blocks for forward in block.settings.get("forward") or ())
    if not any(upstream.is_name for forward in forwards for upstream in forward.upstreams):
        return settings
    # Imported here, as most upstreams are addresses.
    from topodns.plugins.forward.host_names import look_up, with_addresses

    return with_addresses(settings, await look_up(settings))


def _all(settings: Settings, plugin: Plugin[S]) -> list[S]:
    """The settings of this plugin, of each block that has its directive."""
    found = (plugin.settings_of(block) for block in settings.blocks)
    return [each for each in found if each is not None]
