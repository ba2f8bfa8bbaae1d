"""What one server goes through on one cluster: first sync, rest, a list of everything again, a burst, changes."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from socket import inet_aton
from typing import Final

from bench.proc import NoAnswer, cpu_seconds, free_port, resident_megabytes, running
from bench.questions import Question
from bench.scale.clients import ChangeWatcher, Latencies, PacedClient
from bench.scale.servers import Server
from bench.scale.sheet import Sheet
from bench.scale.stand_in import ROLLOUT, Key, StandIn, fresh_address, stand_in
from tests.support.synthetic import SERVICES_PER_NAMESPACE, Cluster, is_headless, namespace_name, service_name

SYNC_WITHIN: Final = 90.0  # seconds, for whatever a server is to be done with
REST: Final = 3.0  # seconds
LINE: Final = "latency, ms: {}"

_LOOK_EVERY: Final = 0.25  # seconds
_BUSY: Final = 0.25  # of a core; the paced client alone makes a server use a twentieth
_QUIET_LOOKS: Final = 5  # in a row, after which nothing is going on
_LOOPBACK: Final = inet_aton("127.0.0.1")
_QUESTIONS: Final = 5_000
_SMALL_SLICES: Final = 200  # of as many headless Services, for the changes at 20 a second
_ROLLOUT_SLICES: Final = 10
_LATENCY_TARGET: Final = "p99 <= 5, worst <= 50"


class OutOfTime(Exception):
    """The bench as a whole takes too long."""


class Course:
    """One server on one cluster. Everything it finds goes to the sheet; it is over at `deadline` (monotonic)."""

    def __init__(self, server: Server, cluster: Cluster, sheet: Sheet, deadline: float) -> None:
        self._server = server
        self._cluster = cluster
        self._sheet = sheet
        self._deadline = deadline
        self._messages = _questions(cluster)
        self._last = Question(_LOOPBACK, _name_of(cluster.services - 1)).message

    def run(self, server_core: int, other_core: int) -> None:
        """Raises OutOfTime, NoAnswer."""
        with tempfile.TemporaryDirectory(prefix="topodns-bench-") as directory, self._api(other_core) as api:
            corefile, port = Path(directory) / "Corefile", free_port()
            corefile.write_text(self._server.corefile(api.url, bool(self._cluster.pods)))
            with running(self._server.command(corefile, port), server_core) as process:
                self._pass(_Run(api, process.pid, port))

    @contextmanager
    def _api(self, core: int) -> Iterator[StandIn]:
        with stand_in(self._cluster, core) as api:
            yield api

    def _pass(self, run: "_Run") -> None:
        began = time.monotonic()
        memory = self._sync(run)
        if not self._cluster.pods:
            with PacedClient(run.port, self._messages) as client:
                time.sleep(REST)
            self._write(LINE.format("at rest"), client.latencies)
        self._relist(run, memory)
        if not self._cluster.pods:
            self._burst(run)
            self._changes(run)
            self._rollout(run)
        waited, elapsed = waiting_seconds(run.pid), time.monotonic() - began
        self._write("its core was taken by others, seconds", f"{waited:.1f} of {elapsed:.0f}")

    def _sync(self, run: "_Run") -> float:
        """Its resident memory after it."""
        pods = bool(self._cluster.pods)
        began = time.monotonic()
        with PacedClient(run.port, self._messages) as client:
            watcher = ChangeWatcher(run.port)
            while not self._knows_the_last(watcher):
                self._check()
            elapsed = time.monotonic() - began
            self._settle(run)
            watcher.close()
        memory = resident_megabytes(run.pid)
        self._write("first sync: CPU seconds", f"{cpu_seconds(run.pid):.1f}", "" if pods else "<= 10")
        self._write("first sync: seconds until the last name", f"{elapsed:.1f}")
        self._write(LINE.format("during the first sync"), client.latencies, _LATENCY_TARGET)
        self._write("MB resident after it", f"{memory:.0f}", "<= 250" if pods else "<= 150")
        return memory

    def _knows_the_last(self, watcher: ChangeWatcher) -> bool:
        try:
            return watcher.seen(self._last, _RECORD, time.monotonic() + _LOOK_EVERY) is not None
        except ConnectionRefusedError:
            time.sleep(_LOOK_EVERY)
            return False

    def _relist(self, run: "_Run", memory: float) -> None:
        forget_peak(run.pid)
        lists = run.api.control("lists")
        kinds = (5 if self._server.own else 4) if self._cluster.pods else (4 if self._server.own else 3)
        used = cpu_seconds(run.pid)
        with PacedClient(run.port, self._messages) as client:
            run.api.control("gone")
            while run.api.control("lists") < lists + kinds:
                self._check()
                time.sleep(_LOOK_EVERY)
            self._settle(run)
        peak = peak_megabytes(run.pid)
        self._write("list of every kind again: CPU seconds", f"{cpu_seconds(run.pid) - used:.1f}")
        self._write(LINE.format("during that"), client.latencies, _LATENCY_TARGET)
        self._write("MB resident at most, x before", f"{peak:.0f}, x {peak / memory:.2f}", "<= x 1.30")

    def _burst(self, run: "_Run") -> None:
        count = 2 * self._cluster.services
        used = cpu_seconds(run.pid)
        with PacedClient(run.port, self._messages) as client:
            run.api.control("burst", count=count)
            self._settle(run)
        self._write(f"burst of {count:,} slice events: CPU seconds", f"{cpu_seconds(run.pid) - used:.1f}")
        self._write(LINE.format("during the burst"), client.latencies, _LATENCY_TARGET)

    def _changes(self, run: "_Run") -> None:
        """20 a second, each of another headless Service, until its name has the new address."""
        chosen = [number for number in range(self._cluster.services // 100, self._cluster.services) if is_headless(number)]
        chosen = chosen[:_SMALL_SLICES]
        slices = [_slice_of(self._cluster, number) for number in chosen]
        names = [_name_of(number) for number in chosen]
        run.api.control("churn", slices=slices, network="11.1", rounds=len(names), batch=1, every=0.05)
        found = self._watch(run, [(name, fresh_address("11.1", number)) for number, name in enumerate(names)])
        self._write("change to answer, ms: 20 changes a second", _since(run.api.control("made"), found), "p99 <= 10")

    def _rollout(self, run: "_Run") -> None:
        """A Service of 1,000 Pods, 10 of them replaced every 100 ms, until the last of each ten has its name."""
        run.api.control("add_rollout", slices=_ROLLOUT_SLICES)
        self._settle(run)
        batch, rounds = 10, 100
        slices = [(namespace_name(0), f"{ROLLOUT}-{number}") for number in range(_ROLLOUT_SLICES)]
        addresses = [fresh_address("11.2", number * batch + batch - 1) for number in range(rounds)]
        run.api.control("churn", slices=slices, network="11.2", rounds=rounds, batch=batch, every=0.1)
        domain = f"{ROLLOUT}.{namespace_name(0)}.svc.cluster.local"
        found = self._watch(run, [(f"{address.replace('.', '-')}.{domain}", address) for address in addresses])
        made = run.api.control("made")[batch - 1 :: batch]
        self._write("change to answer, ms: 1,000 Pods rolled", _since(made, found), "p99 <= 100")

    def _watch(self, run: "_Run", changes: Sequence[tuple[str, str]]) -> list[int]:
        """When each (name, address) was first answered; as far as they came."""
        watcher, found = ChangeWatcher(run.port), list[int]()
        try:
            for name, address in changes:
                message = Question(_LOOPBACK, name).message
                seen = watcher.seen(message, inet_aton(address), min(self._deadline, time.monotonic() + 10))
                if seen is None:
                    raise NoAnswer(f"{self._server.title} has no {address} for {name}")
                found.append(seen)
        finally:
            watcher.close()
        return found

    def _settle(self, run: "_Run") -> None:
        """Return once neither side has had anything to do for a while."""
        limit, quiet = time.monotonic() + SYNC_WITHIN, 0
        while quiet < _QUIET_LOOKS and time.monotonic() < limit:
            self._check()
            before, began = run.cpu_seconds(), time.monotonic()
            time.sleep(_LOOK_EVERY)
            spent = (now - then for now, then in zip(run.cpu_seconds(), before, strict=True))
            quiet = quiet + 1 if max(spent) < _BUSY * (time.monotonic() - began) else 0

    def _check(self) -> None:
        if time.monotonic() > self._deadline:
            raise OutOfTime

    def _write(self, title: str, figure: object, target: str = "") -> None:
        self._sheet.write(self._server.title, title, figure, target)
