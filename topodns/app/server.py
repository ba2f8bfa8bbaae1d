"""The program's life: build, open, serve, reload, drain, stop. Owns every task; the one importer of uvloop."""

import asyncio
import gc
import logging
import os
import random
import resource
import signal
import socket
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import uvloop

from topodns.admin import Admin, unready
from topodns.assembly import Assembly, Generation, Machine
from topodns.cluster_care import ClusterCare, NotKnown, settle_memory
from topodns.cluster_sources import end_tasks
from topodns.config.errors import ConfigError
from topodns.config.interfaces import own_addresses
from topodns.edge.api_error import ApiError
from topodns.edge.log_lines import LineWriter
from topodns.edge.metrics import Metrics
from topodns.edge.regular_file import write_text
from topodns.edge.sockets import ListenError
from topodns.listeners import Listeners, Prepared
from topodns.published import Events, readings
from topodns.resolve.chain import Host
from topodns.settings.server import Reload, Settings
from topodns.surroundings import Options, Surroundings
from topodns.workings import FILE_ERRORS

log = logging.getLogger(__name__)

_GARBAGE: Final = 20_000  # objects made before the collector looks: those of a query go without it

LoadSettings = Callable[[], Settings]
"""Reads the Corefile anew. Raises ConfigError."""


class NotBuilt(Exception):
    """A Corefile that was read met a bug."""


STOP_ERRORS: Final = (NotKnown, NotBuilt, ApiError, ConfigError, ListenError, *FILE_ERRORS)
"""What keeps a Corefile from being served: at the start the program ends, later the old one stays."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """What is said and written once everything is open."""

    banner: Callable[[Mapping[tuple[str, int], int], Settings], None]
    pid_file: str = ""


def run(load: LoadSettings, announcement: Announcement, options: Options | None = None) -> int:
    """Serve until a signal says stop; the exit status. Raises one of STOP_ERRORS where it cannot start."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Server(load, announcement, options or Options()).run())


class Server:
    """One run of the program."""

    def __init__(self, load: LoadSettings, announcement: Announcement, options: Options) -> None:
        self._load = load
        self._around = options.around
        self._around_tasks: list[asyncio.Task[None]] = []
        self._announcement = announcement
        self._rng = random.Random()
        self._lines = LineWriter()
        machine = Machine(Host(socket.gethostname(), self._rng), os.environ.get("NODE_NAME", ""), own_addresses())
        self._assembly = Assembly(machine, self._lines, options.identity, options.memory)
        self._listeners = Listeners(self._rng, options.instance, options.memory)
        self._events = Events(self._assembly.workshop.counted)
        self._metrics = Metrics(self._listeners.tallies, readings(self._listeners, self._events))
        if options.readings is not None:
            self._metrics.tell(options.readings(self._assembly.workshop.counted))
        waits_for = options.around.waits_for if options.around is not None else tuple
        self._admin = Admin(self._metrics, options.metrics_listen, options.instance, waits_for)
        self._clusters = ClusterCare(self._start, self._listeners.forget)
        self._tasks: set[asyncio.Task[None]] = set()  # those of the generation in charge alone
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._failed = False
        self._reloads = asyncio.Event()
        self._tells_of_clusters = False
        self._generation: Generation | None = None

    async def run(self) -> int:
        """Start, serve, stop."""
        self._listen_to_signals()  # first: a large cluster takes seconds to read
        _allow_many_files()
        gc.set_threshold(_GARBAGE)
        try:
            if not await self._unless_stopped(self._begin()):
                await self._give_up()
                return 0
            self._announce()
        except BaseException:
            await self._give_up()
            raise
        reloading = asyncio.create_task(self._reload_when_asked(), name="reload")
        reloading.add_done_callback(self._task_ended)
        await self._stop.wait()
        await end_tasks([reloading])
        await self._leave()
        return 1 if self._failed else 0

    async def _begin(self) -> None:
        around = self._around
        await self._take_over(self._load())
        if around is not None:
            await around.begin()
            self._around_tasks = [self._start(work, name) for work, name in around.work()]
            self._around_tasks.append(self._start(self._reload_for(around), "reload for its surroundings"))

    async def _reload_for(self, around: Surroundings) -> None:
        while True:
            await around.wants_reload()
            self._reloads.set()

    async def _give_up(self) -> None:
        """The start has failed: leave nothing behind."""
        await self._clear_the_way()
        if self._around is not None:
            await self._around.after_close()

    async def _clear_the_way(self) -> None:
        """Nobody new is to come to us."""
        await end_tasks(self._around_tasks)
        if self._around is not None:
            await self._around.before_drain()

    async def _unless_stopped(self, starting: Coroutine[None, None, None]) -> bool:
        """Whether the start came to its end; a signal to stop cuts it short."""
        start = asyncio.create_task(starting, name="start")
        stop = asyncio.create_task(self._stop.wait(), name="stop")
        await asyncio.wait({start, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not start.done():
            await end_tasks([start])
            return False
        await start
        return True

    async def _take_over(self, settings: Settings) -> None:
        """Build a generation and put it in charge, or raise and leave everything as it was.

        A feed that it shares with the one before is not touched at all; those that it does without end afterwards.
        """
        generation = self._build(settings)
        try:
            await self._clusters.begin(generation)
            prepared = await self._prepare(generation)
        except BaseException:
            await self._clusters.give_up(generation)
            raise
        await self._end_tasks()
        self._clusters.take_over(generation)
        await self._listeners.commit(prepared)
        self._close_workings()
        self._generation = self._events.generation = generation
        self._start_tasks(generation)
        await self._clusters.settle()
        settle_memory()
        for line in unready(generation.clusters):
            log.warning("plugin/%s", line)
        _heed(generation.settings)

    def _build(self, settings: Settings) -> Generation:
        """Nothing has happened yet: even a bug of ours in there is no reason to end what is being served."""
        try:
            generation = self._assembly.build(settings, self._clusters.feeds)
        except (ConfigError, *FILE_ERRORS):
            raise
        except Exception as problem:
            log.exception("bug: this Corefile could not be built")
            raise NotBuilt(f"a bug of topodns: {problem!r}") from problem
        self._tell_of_clusters()
        return generation

    def _tell_of_clusters(self) -> None:
        """Their metrics, from the first Corefile on that has one."""
        maker = self._assembly.cluster_maker
        if maker is not None and not self._tells_of_clusters:
            # Imported here, as `clusters` is by `assembly`.
            from topodns.published_clusters import cluster_readings

            self._metrics.tell(cluster_readings(self._events.clusters, maker))
            self._tells_of_clusters = True

    async def _prepare(self, generation: Generation) -> Prepared:
        """The sockets of a generation, opened when its clusters are known, with its admin side serving."""
        if self._generation is None:
            await self._admin.follow(generation)  # /health and /ready have something to say meanwhile
        await self._clusters.await_known(generation)
        prepared = self._listeners.prepare(generation)
        try:
            await self._admin.follow(generation)
        except BaseException:
            prepared.close()
            raise
        return prepared

    def _start_tasks(self, generation: Generation) -> None:
        self._own(self._clusters.work(), "warm")
        for workings in generation.workings:
            workings.start(self._clusters.changed)
            for source in workings.sources:
                self._own(source.run(), "files")
        health = next((block.health for block in generation.settings.blocks if block.health is not None), None)
        if health is not None:
            self._own(self._events.health.run(health.listen.host, health.listen.port), "health")
        for block in generation.settings.blocks:
            if block.reload is not None:
                log.info("plugin/reload: Running configuration SHA512 = %s", generation.settings.digest)
                self._own(self._look_for_changes(block.reload, generation.settings.digest), "corefile")
                break

    def _own(self, work: Coroutine[None, None, None], name: str) -> None:
        """Run a background task for this generation; one that dies of a bug takes the program down."""
        self._tasks.add(self._start(work, name))

    def _start(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._task_ended)
        return task

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.critical("bug: task %s died", task.get_name(), exc_info=task.exception())
            self._failed = True
            self._hurry.set()
            self._stop.set()

    def _close_workings(self) -> None:
        for workings in self._generation.workings if self._generation is not None else ():
            workings.close()

    async def _end_tasks(self) -> None:
        await end_tasks(list(self._tasks))

    async def _look_for_changes(self, times: Reload, current: str) -> None:
        """The `reload` directive: look at the Corefile every interval, give or take half the jitter.

        A Corefile that was refused is not tried again (nor counted again) before it has changed, as in CoreDNS.
        """
        seen = current  # the digest of what was found at the last look, or what was wrong with it
        while True:
            await asyncio.sleep(max(1.0, times.interval + self._rng.uniform(-times.jitter / 2, times.jitter / 2)))
            before = seen
            try:
                seen = self._load().digest
            except ConfigError as problem:
                seen = str(problem)
                if seen != before:
                    self._events.reload_failed(seen)
                continue
            if seen not in (before, current):
                self._reloads.set()

    async def _reload_when_asked(self) -> None:
        while True:
            await self._reloads.wait()
            self._reloads.clear()
            log.info("Reloading")
            try:
                await self._take_over(self._load())
            except STOP_ERRORS as problem:
                self._events.reload_failed(str(problem))
                continue
            log.info("Reloading complete")

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stop.set)
        loop.add_signal_handler(signal.SIGINT, self._interrupted)
        loop.add_signal_handler(signal.SIGQUIT, self._interrupted)
        loop.add_signal_handler(signal.SIGUSR1, self._reloads.set)
        loop.add_signal_handler(signal.SIGUSR2, log.warning, "SIGUSR2: no binary upgrade here; nothing is done")
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as CoreDNS

    def _interrupted(self) -> None:
        """Stop without the lameduck; the second time, at once."""
        if self._hurry.is_set():
            os._exit(2)
        self._hurry.set()
        self._stop.set()

    def _announce(self) -> None:
        assert self._generation is not None
        if self._announcement.pid_file:
            write_text(self._announcement.pid_file, f"{os.getpid()}\n")
        self._announcement.banner(self._listeners.ports(), self._generation.settings)

    async def _leave(self) -> None:
        """Not ready, then lameduck (still answering), then drain, then close."""
        self._admin.go_lame()
        await self._clear_the_way()
        lameduck = _lameduck(self._generation.settings) if self._generation is not None else 0.0
        if lameduck and not self._hurry.is_set():
            log.info("plugin/health: Going into lameduck mode for %gs", lameduck)
            with suppress(TimeoutError):
                async with asyncio.timeout(lameduck):
                    await self._hurry.wait()
        await self._end_tasks()
        await self._clusters.close()
        await self._listeners.close()
        self._close_workings()
        if self._around is not None:
            await self._around.after_close()
        self._admin.close()
        self._lines.flush()
        if self._announcement.pid_file:
            with suppress(FileNotFoundError):
                os.unlink(self._announcement.pid_file)


def _heed(settings: Settings) -> None:
    """Do what concerns the whole process, and say what is read and then has no effect."""
    debug = any(block.debug for block in settings.blocks)
    logging.getLogger("topodns").setLevel(logging.DEBUG if debug else logging.INFO)
    if any(block.multisocket != 1 and block.multisocket is not None for block in settings.blocks):
        log.warning("plugin/multisocket: One socket for each address is what there is; more replicas take more cores")
    if any(block.pprof is not None for block in settings.blocks):
        log.warning("plugin/pprof: There are no profiles of Go here, and nothing listens for them")


def _allow_many_files() -> None:
    """As many descriptors as we may have: each question to an upstream over UDP takes one (as Go programs do)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _lameduck(settings: Settings) -> float:
    return max((block.health.lameduck for block in settings.blocks if block.health is not None), default=0.0)
