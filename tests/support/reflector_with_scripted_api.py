"""One reflector between a scripted server and a state, in virtual time: a kind's objects, fault by fault."""

import asyncio
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address
from itertools import pairwise
from random import Random
from typing import Any

from tests.support.api_objects import service
from tests.support.scripted_api import Body, ScriptedApi, at_version, bookmark, event, page
from tests.support.virtual_event_loop import run_virtually
from topodns.cluster.model import ObjectKey, Service
from topodns.cluster.publishing_state import PublishingState
from topodns.cluster.state import ClusterState
from topodns.dependency import Fact
from topodns.kube.client.contract import ApiError
from topodns.kube.informer.decode_turns import DecodeTurns
from topodns.kube.informer.lister import SharedState
from topodns.kube.informer.reflector import Reflector
from topodns.kube.informer.resources import Resource
from topodns.kube.informer.retry import RetryGate
from topodns.kube.informer.state_writer import StateWriter

SERVICES = Resource("Service", "services", ("/api/v1/services",), {"labelSelector": "app=web"})
SLICES = Resource("EndpointSlice", "endpointslices.discovery.k8s.io", ("/v1/slices", "/v1beta1/slices"))
NODES = Resource("Node", "nodes", ("/api/v1/nodes",), optional=True)
IMPORTS = Resource("ServiceImport", "serviceimports.multicluster.x-k8s.io", ("/imports",), optional=True, custom=True)

NAMES = ("a", "b", "c", "d", "e")
MOVED = {**service("a"), "spec": {"clusterIP": "10.96.0.7"}}
BAD = {**service("b"), "spec": {"ports": "x"}}


class Setup:
    """A reflector between a scripted server and a state, and the changes that the state published.

    `options` are those of SharedState.
    """

    def __init__(self, resource: Resource, *replies: Body | ApiError, **options: Any) -> None:
        self.api = ScriptedApi(deque(replies))
        self.state = ClusterState(frozenset({resource.kind}))
        self.published: list[frozenset[Fact]] = []
        writer = StateWriter(PublishingState(self.state, lambda: 1000.0, [self.published.append]))
        shared = SharedState(self.api, writer, RetryGate(), DecodeTurns(), Random(4), **options)
        self.reflector = Reflector(resource, shared)
        self.progress = self.reflector.progress
        self._kind = resource.kind

    @property
    def names(self) -> str:
        """Those of NAMES that are held, as a word."""
        keys = {name: [ObjectKey("default", name), ObjectKey("", name)] for name in NAMES}
        return "".join(name for name in NAMES if any(self.state.held(self._kind, key) for key in keys[name]))

    async def pass_time(self, seconds: float, verifying: bool = False) -> None:
        """Let the reflector work until this time of the clock, then stop it."""
        tasks = [asyncio.create_task(self.reflector.follow())]
        if verifying:
            tasks.append(asyncio.create_task(self.reflector.verify()))
        await asyncio.sleep(seconds - asyncio.get_running_loop().time())
        for task in tasks:
            assert not task.done(), task.exception()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def after(
    seconds: float,
    resource: Resource,
    *replies: Body | ApiError,
    lists: Iterable[Body | ApiError] = (),
    verifying: bool = False,
    **options: Any,
) -> Setup:
    """The world once this time has passed. `lists` are for requests to list alone, as in ScriptedApi."""

    async def story() -> Setup:
        setup = Setup(resource, *replies, **options)
        setup.api.lists.extend(lists)
        await setup.pass_time(seconds, verifying)
        return setup

    return run_virtually(story())


def added(*names: str, version: int = 10) -> list[bytes]:
    return [event("ADDED", service(name), version) for name in names]


def streamed(*names: str, version: int = 100) -> list[bytes]:
    """A list at the beginning of a watch."""
    return [*added(*names), bookmark(version, initial_events_end=True)]


def listed(*names: str, version: int = 100, token: str = "") -> Body:
    return page(*(at_version(service(name), 10) for name in names), version=version, token=token)


def gaps_of(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


def cluster_ips(setup: Setup) -> list[str]:
    """Of Service a."""
    held = setup.state.held("Service", ObjectKey("default", "a"))
    assert isinstance(held, Service)
    return [str(ip_address(packed)) for packed in held.cluster_ips]
