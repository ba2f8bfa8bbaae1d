"""`topodns locator` as processes against a fake API server: leader and follower, metrics, signals."""

import json
import os
import re
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.api_objects import node, pod
from tests.support.event_loops import PATIENCE, SLOWNESS
from tests.support.fake_api.server import FakeApi, running
from tests.support.forked_server import ForkedProcess
from tests.support.server_process import ROOT, own_address
from topodns.kube.lease import LEASE_SECONDS
from topodns.locator.leader_election import RETRY_SECONDS

NODES = (node("n1", "a", "192.0.2.1"), node("n2", "b", "192.0.2.2"))


class Process:
    def __init__(self, directory: Path, url: str, number: int, *flags: str) -> None:
        self.address = f"{own_address()}:9153"
        kubeconfig = directory / "config"
        cluster = {"name": "c", "cluster": {"server": url}}
        context = {"name": "c", "context": {"cluster": "c"}}
        kubeconfig.write_text(json.dumps({"current-context": "c", "contexts": [context], "clusters": [cluster]}))
        self.log = directory / f"log-{number}"
        words = ["locator", "--kubeconfig", str(kubeconfig), "--metrics", self.address, "--coalesce", "0.2", *flags]
        with open(os.devnull, "rb") as nothing, self.log.open("wb") as output:
            self.process = ForkedProcess(words, ROOT, (nothing, output, output))

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=PATIENCE) as response:
            text: str = response.read().decode()
            return text

    def metric(self, name: str) -> float:
        """The value of a sample, 0.0 while nothing listens yet."""
        try:
            found = re.search(rf"^{re.escape(name)} (\S+)$", self.get("/metrics"), re.MULTILINE)
        except OSError:
            return 0.0
        assert found, f"there is no {name}"
        return float(found[1])

    @property
    def leads(self) -> bool:
        return self.metric("topodns_locator_leader") == 1.0

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def until(condition: Callable[[], bool], shown: Callable[[], object] = lambda: "") -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < PATIENCE, f"never came: {shown()}"
        time.sleep(0.05)
    return time.monotonic() - began


@contextmanager
def locators(directory: Path, api: FakeApi, count: int = 1, *flags: str) -> Iterator[list[Process]]:
    with ExitStack() as ending:
        processes = []
        for number in range(count):
            process = Process(directory, api.url, number, *flags)
            ending.callback(process.process.wait)
            ending.callback(process.process.kill)
            processes.append(process)
        yield processes


def names(api: FakeApi) -> set[str]:
    return {value["metadata"]["name"] for value in api.objects() if value["kind"] == "NodeLocator"}


def test_it_writes_serves_metrics_and_gives_its_lease_back_at_sigterm(tmp_path: Path) -> None:
    with running([*NODES, pod("p", "10.1.0.1", "n1")]) as api, locators(tmp_path, api) as (process,):
        until(lambda: names(api) == {"n1", "n2"}, process.log.read_text)
        until(lambda: process.metric('topodns_locator_writes_total{kind="nodelocator",result="applied"}') == 2.0)
        assert process.get("/healthz") == "OK"
        assert process.leads
        assert process.metric('topodns_locator_objects{resource="pods"}') == 1.0
        assert process.metric("topodns_locator_pending") == 0.0
        assert process.metric("topodns_locator_lag_seconds") == 0.0
        assert process.metric("topodns_locator_terms_total") == 1.0
        assert process.stop() == 0
        (lease,) = [value for value in api.objects() if value["kind"] == "Lease"]
        assert lease["spec"]["holderIdentity"] == ""
        assert "Traceback" not in process.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_of_two_one_writes_and_the_other_takes_over(tmp_path: Path, number: signal.Signals) -> None:
    with running(NODES) as api, locators(tmp_path, api, 2) as processes:
        until(lambda: names(api) == {"n1", "n2"} and any(process.leads for process in processes))
        leader, follower = sorted(processes, key=lambda process: not process.leads)
        until(lambda: "takes part in the election" in follower.log.read_text())
        assert not follower.leads
        leader.stop(number)
        api.put(node("n3", "a", "192.0.2.3"))
        took = until(lambda: "n3" in names(api), follower.log.read_text)
        assert follower.leads
        assert took < SLOWNESS * (2 * RETRY_SECONDS + (0 if number == signal.SIGTERM else LEASE_SECONDS))
        assert follower.metric('topodns_locator_writes_total{kind="nodelocator",result="applied"}') == 1.0


def test_podlocators_are_written_by_flag(tmp_path: Path) -> None:
    with running([pod("p", "10.1.0.1", "n1")]) as api, locators(tmp_path, api, 1, "--kind", "podlocator") as (process,):
        until(lambda: any(value["kind"] == "PodLocator" for value in api.objects()), process.log.read_text)
        assert process.stop(signal.SIGINT) == 0


def test_without_the_right_to_leases_it_says_so_once_and_writes_nothing(tmp_path: Path) -> None:
    with running(NODES) as api:
        api.deny("leases")
        with locators(tmp_path, api) as (process,):
            until(lambda: process.metric('topodns_locator_refusals_total{reason="rbac"}') >= 2)
            lines = [line for line in process.log.read_text().splitlines() if "WARNING" in line]
            assert len(lines) == 1
            assert lines[0].startswith("[WARNING] locator: Lease kube-system/topodns-locator: 403: leases")
            assert not names(api)
            assert not process.leads
            api.heal()
            until(lambda: names(api) == {"n1", "n2"})


def test_an_address_that_is_taken_ends_it(tmp_path: Path) -> None:
    with running(NODES) as api, locators(tmp_path, api) as (first,):
        until(lambda: first.leads)
        second = Process(tmp_path, api.url, 1, "--metrics", first.address)
        assert second.process.wait(PATIENCE) == 1
        assert "address already in use" in second.log.read_text().lower()
