"""The API server of benches: the tests' stand-in for one, with a cluster, and with the changes that are measured.

`python -m bench.scale.stand_in PORT NODES,SERVICES,ENDPOINTS,PODS` runs it with a synthetic cluster, `PORT FILE` with
the objects of a List as JSON. `StandIn` starts and controls it from another process. The time of a change is that at
which it was given to the watches, by the machine's wall clock.
"""

import asyncio
import gc
import json
import os
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

from bench.proc import free_port, running, until
from tests.support.api_objects import namespace
from tests.support.fake_api.listener import HttpFront
from tests.support.fake_api.resources import Object
from tests.support.fake_api.server import FakeApi
from tests.support.synthetic_clusters import Cluster, namespace_name, service_name

ROLLOUT: Final = "rollout"  # the Service whose Pods are all replaced, in the first namespace
READY_WITHIN: Final = 60.0  # seconds; 150,000 Pods take 3
PATIENCE: Final = 60.0  # seconds for one control call

_SERVICE: Final = "kubernetes.io/service-name"
_SLICES: Final = "endpointslices"
_SPARE: Final = range(251 << 8, 255 << 8)  # last two octets of addresses that neither endpoints nor clients have

Key = tuple[str, str]
"""(namespace, name)"""


def fresh_address(network: str, number: int) -> str:
    """The address of the new Pod of change `number`. `network`: the first two octets, "A.B", which no other Pod has."""
    return f"{network}.{number >> 8}.{number & 255}"


class Stage(FakeApi):
    """The stand-in and its changes. Each public method is called by `POST /control/NAME`, its arguments as JSON."""

    def __init__(self, port: int, objects: Iterable[Object] = ()) -> None:
        super().__init__(objects, partial(HttpFront, port=port))
        self._made: list[int] = []
        self._churn: asyncio.Task[None] | None = None
        self._spare = cycle(_SPARE)  # never the address that the endpoint has, which would be no change

    def relist(self) -> None:
        """End every watch; none can be resumed, so that all kinds are listed again."""
        self.requests.clear()
        self.gone()

    def lists(self) -> int:
        """The number of kinds that were listed since the start or the last `relist`."""
        asked = self.requests.all
        return len({one.resource for one in asked if "sendInitialEvents" in one.query or one.verb == "list"})

    def add_system(self) -> None:
        """Add the Namespace whose uid is the cluster's."""
        self.put(namespace("kube-system"))

    def burst(self, count: int) -> None:
        """Change `count` EndpointSlices at once: the first endpoint of each loses its readiness, or gets it back."""
        store = self.stores[_SLICES]
        for key in islice(cycle(store.keys()), count):
            value = self._slice(key)
            conditions = value["endpoints"][0]["conditions"]
            conditions["ready"] = not conditions["ready"]
            store.put(value)

    def add_rollout(self, slices: int) -> None:
        """Add the headless Service ROLLOUT with so many EndpointSlices of 100 endpoints."""
        namespace = namespace_name(0)
        service = self._value("services", (namespace, service_name(0)))
        service["metadata"]["name"] = ROLLOUT
        self.put(service)
        model = self._slice((namespace, f"{service_name(0)}-{0:05x}"))
        for number in range(slices):
            model["metadata"].update(name=f"{ROLLOUT}-{number}", labels={_SERVICE: ROLLOUT})
            for at, endpoint in enumerate(model["endpoints"]):
                endpoint["addresses"] = [fresh_address("11.255", number * 100 + at)]
            self.put(model)

    def churn(self, slices: Sequence[Key], network: str | None, rounds: int, batch: int, every: float) -> None:
        """Begin to replace endpoints of these slices in turn: `rounds` batches of changes, one every `every` seconds.

        New addresses are in `network` ("A.B"). None: each is in the /16 of the old one, so that proven podCIDRs stay
        proven.
        """
        self._made.clear()
        self._churn = asyncio.create_task(self._replace(slices, network, rounds, batch, every), name="churn")

    def made(self) -> list[int]:
        """The time of each change of `churn` so far, in nanoseconds of the wall clock."""
        return self._made

    async def _replace(self, slices: Sequence[Key], network: str | None, rounds: int, batch: int, every: float) -> None:
        due = self.loop.time()
        for number in range(rounds):
            await asyncio.sleep(max(0.0, due - self.loop.time()))
            due += every
            for each in range(number * batch, (number + 1) * batch):
                namespace, name = slices[each % len(slices)]
                address = None if network is None else fresh_address(network, each)
                self._replace_one((namespace, name), each // len(slices), address)
            self._made.extend([time.time_ns()] * batch)

    def _replace_one(self, key: Key, at: int, address: str | None) -> None:
        value = self._slice(key)
        endpoints = value["endpoints"]
        replaced = endpoints[at % len(endpoints)]
        if address is None:
            first, second, *_ = replaced["addresses"][0].split(".")
            address = fresh_address(f"{first}.{second}", next(self._spare))
        replaced["addresses"], replaced["conditions"]["ready"] = [address], True
        self.stores[_SLICES].put(value)

    def _slice(self, key: Key) -> dict[str, Any]:
        return self._value(_SLICES, key)

    def _value(self, resource: str, key: Key) -> dict[str, Any]:
        value = self.stores[resource].get(key)
        assert value is not None, key
        return value

    def _controlled(self, name: str, arguments: dict[str, object]) -> object:
        return getattr(self, name)(**arguments)


@dataclass(frozen=True)
class StandIn:
    """A running stand-in on 127.0.0.1:`port`, in another process."""

    pid: int
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def control(self, name: str, **arguments: object) -> Any:
        """Call this method of `Stage` in the other process, with these arguments; its result. Raises OSError."""
        body = json.dumps(arguments).encode()
        with urllib.request.urlopen(f"{self.url}/control/{name}", body, timeout=PATIENCE) as response:
            return json.load(response)


@contextmanager
def stand_in(cluster: Cluster | Path, core: int) -> Iterator[StandIn]:
    """A stand-in with this cluster, or with the objects of this file, on this core, until the end of the context.

    Raises NoAnswer.
    """
    port = free_port()
    if isinstance(cluster, Path):
        content = str(cluster)
    else:
        content = f"{cluster.nodes},{cluster.services},{cluster.endpoints},{cluster.pods}"
    command = (sys.executable, "-m", "bench.scale.stand_in", str(port), content)
    with running(command, core) as process:
        api = StandIn(process.pid, port)
        until(lambda: _is_served(api), "an answer of the stand-in for an API server", READY_WITHIN)
        yield api


def _is_served(api: StandIn) -> bool:
    with suppress(OSError):
        api.control("lists")
        return True
    return False


async def _serve(stage: Stage) -> None:
    async with stage:
        await asyncio.Event().wait()


def _stage(port: int, content: str) -> Stage:
    if Path(content).is_file():
        return Stage(port, json.loads(Path(content).read_bytes())["items"])
    stage = Stage(port)
    stage.generate(Cluster(*map(int, content.split(","))))
    return stage


def main(port: str, content: str) -> None:
    os.nice(10)  # the client is on the same core, and must not wait for this process
    stage = _stage(int(port), content)
    gc.freeze()  # so that garbage collections do not go through the cluster, which would delay changes
    asyncio.run(_serve(stage))


if __name__ == "__main__":
    main(*sys.argv[1:])
