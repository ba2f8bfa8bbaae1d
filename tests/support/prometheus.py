"""A real Prometheus, Debian's, kept in tests/kubelab's cache: it scrapes what a test runs, and answers PromQL.

`python -m tests.support.prometheus` fetches it where it is missing, or says why it cannot.
"""

import http.client
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import yaml

from tests.kubelab.cache import filling
from tests.kubelab.debian import RELEASE
from tests.kubelab.programs import PROGRAMS, place
from tests.support.event_loops import PATIENCE
from tests.support.server_process import until

SCRAPE_INTERVAL: Final = "500ms"  # as long may a scrape take


def kept(program: str) -> Path:
    """Where a program of Debian's prometheus is, or is to be."""
    return PROGRAMS / RELEASE / program


def fetch(program: str) -> None:
    """Raises OSError or CalledProcessError."""
    if kept(program).exists():
        return
    with filling():
        place("prometheus", {f"usr/bin/{program}": kept(program)})


@dataclass(frozen=True, slots=True)
class Sample:
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Prometheus:
    """One that runs. `entered` leads to the network that it is in; it is asked about `moment`, None being now."""

    process: "subprocess.Popen[bytes]"
    address: str
    entered: Callable[[], AbstractContextManager[None]]
    moment: float | None = None  # in Unix seconds

    def as_of_now(self) -> "Prometheus":
        """The same, asked about this moment from now on."""
        return replace(self, moment=time.time())

    def look_twice(self) -> None:
        """Return when all targets have been scraped twice more: a counter that has moved meanwhile has a rate."""
        looks = self._looks()
        until(lambda: self._looks() >= looks + 2, "two more scrapes", PATIENCE)

    def _looks(self) -> float:
        return min(sample.value for sample in self.query("sum_over_time(up[10m])"))

    def query(self, expression: str) -> list[Sample]:
        """The instant vector, or the scalar, that the expression is."""
        when = {} if self.moment is None else {"time": self.moment}
        status, answer = self.get(f"/api/v1/query?{urlencode({'query': expression, **when})}")
        assert status == 200, answer
        data = json.loads(answer)["data"]
        rows = [{"metric": {}, "value": data["result"]}] if data["resultType"] == "scalar" else data["result"]
        return [Sample(row["metric"], float(row["value"][1])) for row in rows]

    def series(self, selector: str) -> list[Mapping[str, str]]:
        """The labels of each series that the selector finds: what `label_values` of Grafana asks."""
        status, answer = self.get(f"/api/v1/series?{urlencode({'match[]': selector})}")
        assert status == 200, answer
        found: list[Mapping[str, str]] = json.loads(answer)["data"]
        return found

    def get(self, path: str) -> tuple[int, str]:
        with self.entered():
            connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
            try:
                connection.request("GET", path)
                response = connection.getresponse()
                return response.status, response.read().decode()
            finally:
                connection.close()

    def ready(self) -> bool:
        assert self.process.poll() is None
        try:
            return self.get("/-/ready")[0] == 200
        except OSError:
            return False


@contextmanager
def prometheus(
    directory: Path,
    address: str,
    jobs: Mapping[str, str],
    entered: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[Prometheus]:
    """One at this `host:port`, that scrapes the target of each job and has found all of them up."""
    scrapes: list[dict[str, Any]] = [
        {"job_name": job, "static_configs": [{"targets": [target]}]} for job, target in jobs.items()
    ]
    config = directory / "prometheus.yaml"
    config.write_text(yaml.safe_dump({"global": {"scrape_interval": SCRAPE_INTERVAL}, "scrape_configs": scrapes}))
    words = [f"--config.file={config}", f"--storage.tsdb.path={directory / 'tsdb'}", f"--web.listen-address={address}"]
    log = directory / "prometheus.log"
    with entered(), log.open("wb") as output:
        process = subprocess.Popen([kept("prometheus"), *words], stdout=output, stderr=subprocess.STDOUT, cwd=directory)
    try:
        running = Prometheus(process, address, entered)
        until(running.ready, f"Prometheus is ready: {log}")
        until(lambda: len(running.query("up == 1")) == len(jobs), f"all is scraped: {log}")
        yield running
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    try:
        fetch("prometheus")
    except (OSError, subprocess.CalledProcessError) as problem:
        print(f"no Prometheus could be had here: {problem}")
