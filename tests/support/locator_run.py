"""A controller `topodns locator` that leads, in this process, and the fake API server that it writes to."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.api_objects import Object, node
from tests.support.event_loops import eventually
from tests.support.fake_api.server import FakeApi
from topodns.kube.client.kubeconfig import connect
from topodns.locator.controller import LocatorController
from topodns.locator.leader_election import Fence
from topodns.locator.metrics import LocatorCounts
from topodns.locator.objects import KINDS
from topodns.locator.projection import LABELS
from topodns.locator.refusals import Refusals

WINDOW = 0.3  # seconds
OWN = {"nodelocator": "nodelocators", "podlocator": "podlocators"}


class Run:
    """A controller that leads, and the API server that it writes to."""

    def __init__(self, api: FakeApi, kind: str) -> None:
        self.api, self.kind = api, kind
        self.counts = LocatorCounts()
        self.fence = Fence(time.monotonic)
        self.fence.renewed(time.monotonic() + 3600.0)

    def locators(self) -> dict[str, str]:
        """Name and addresses of each locator, with the node of a PodLocator before them."""
        found = {}
        for value in self.api.stores[OWN[self.kind]].objects():
            spec = value["spec"]
            words = [spec["nodeName"], *spec["addresses"]] if self.kind == "podlocator" else spec["podIPs"]
            found[value["metadata"]["name"]] = " ".join(words)
        return found

    def labels(self) -> list[dict[str, str]]:
        """The labels in each locator."""
        field = KINDS[self.kind].labels
        return [value["spec"][field] for value in self.api.stores[OWN[self.kind]].objects()]

    async def until(self, **locators: str) -> float:
        """Wait until there are these; the seconds that it took."""
        began = time.monotonic()
        await self.until_true(lambda: self.locators() == locators, lambda: self.locators())
        return time.monotonic() - began

    async def until_true(self, condition: Callable[[], bool], shown: Callable[[], object] = lambda: "") -> None:
        try:
            await eventually(condition)
        except TimeoutError:
            pytest.fail(f"never came: {shown()}")

    def writes(self) -> int:
        return sum(self.counts.writes.values())

    def logged(self, caplog: pytest.LogCaptureFixture) -> str:
        return "\n".join(caplog.messages)


Story = Callable[[Run], Coroutine[Any, Any, None]]


@asynccontextmanager
async def leading(api: FakeApi, directory: Path, kind: str = "nodelocator") -> AsyncIterator[Run]:
    file = directory / "config"
    file.write_text(
        json.dumps(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                "clusters": [{"name": "c", "cluster": {"server": api.url}}],
            }
        )
    )
    run = Run(api, kind)
    async with connect(str(file)) as client:
        refusals = Refusals(KINDS[kind], run.counts, client)
        controller = LocatorController(client, KINDS[kind], LABELS, WINDOW, run.fence, run.counts, refusals, Random(1))
        task = asyncio.create_task(controller.run())
        try:
            yield run
            assert not task.done(), task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def play(directory: Path, story: Story, *objects: Object, kind: str = "nodelocator") -> None:
    async def whole() -> None:
        async with FakeApi(objects) as api, leading(api, directory, kind) as run:
            await story(run)

    asyncio.run(whole())


NODES = (node("n1", "a", "192.0.2.1"), node("n2", "b", "192.0.2.2"))


def locator(name: str, *ips: str) -> Object:
    return {
        "kind": "NodeLocator",
        "apiVersion": "topodns.io/v1alpha1",
        "metadata": {"name": name},
        "spec": {"podIPs": list(ips), "addresses": [], "labels": {}},
    }
