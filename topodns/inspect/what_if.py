"""What-if: hypothetical changes of a cluster, such as a Node that is down, and its Services and Nodes with them.

A change is text on a command line or in a URL: `node=NAME:down`, `zone=NAME:down`, `scale=NAMESPACE/NAME:-N`,
`keys=NAMESPACE/NAME:KEY,KEY` (`none`: no filtering) or `default=KEY,KEY`.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from itertools import chain
from typing import Final

from topodns.cluster.findings.finding import Hides, hides_none
from topodns.cluster.model import (
    ZONE_LABEL,
    Endpoint,
    InvalidPolicy,
    KeySource,
    Node,
    ObjectKey,
    Policy,
)
from topodns.cluster.state import ClusterState
from topodns.inspect.errors import Refused
from topodns.inspect.model import FAMILIES, PodKey, ServiceView, Steps, parse_service, pod_key
from topodns.inspect.text import offer
from topodns.topology.keys import guarded, parse_list

MAX_CHANGES: Final = 64  # of one what-if
STEP: Final = 1000  # Services or Nodes looked at in one step
ENDPOINTS: Final = 500  # looked at in one step
MAX_TEXT: Final = 2000  # characters of one change: 16 keys of 316

_FORMS: Final = (
    "node=NAME:down",
    "zone=NAME:down",
    "scale=NAMESPACE/NAME:-N",
    "keys=NAMESPACE/NAME:KEY,KEY",
    "default=KEY,KEY",
)
_SHOWN: Final = 80  # characters quoted in a message
_NUMBER: Final = re.compile(r"[-+][0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class NodeDown:
    """A Node is gone, with its clients and its endpoints."""

    name: str


@dataclass(frozen=True, slots=True)
class ZoneDown:
    """All Nodes with this value of topology.kubernetes.io/zone are gone, as with NodeDown."""

    topology_zone: str


@dataclass(frozen=True, slots=True)
class ScaledDown:
    """A Service has `by` ready Pods fewer.

    Each is taken from the Node that has the most of them left; of several the first by name, on it the last in the
    order of the EndpointSlices.
    """

    service: ObjectKey
    by: int


@dataclass(frozen=True, slots=True)
class Rekeyed:
    """A Service has these topology keys, as if of its annotation; None: no filtering."""

    service: ObjectKey
    policy: Policy | None


@dataclass(frozen=True, slots=True)
class Defaulted:
    """The Corefile has a line `default` with these keys alone: see `topology.keys.DefaultKeys`."""

    policy: Policy


WhatIf = NodeDown | ZoneDown | ScaledDown | Rekeyed | Defaulted


def parse_changes(texts: Sequence[str]) -> tuple[WhatIf, ...]:
    """The changes, in order. Raises Refused, also for more than MAX_CHANGES."""
    _check_number(texts)
    return tuple(map(parse_change, texts))


def parse_change_steps(texts: Sequence[str]) -> Steps[tuple[WhatIf, ...]]:
    """The result of `parse_changes`, a change in each step: one with many keys takes 0.1 ms."""
    _check_number(texts)
    changes = []
    for text in texts:
        changes.append(parse_change(text))
        yield
    return tuple(changes)


def _check_number(texts: Sequence[str]) -> None:
    if len(texts) > MAX_CHANGES:
        raise Refused(f"found {len(texts)} changes, expected at most {MAX_CHANGES}")


def parse_change(text: str) -> WhatIf:
    """The change that a text describes. Raises Refused; whether names exist is up to Scenario."""
    if len(text) > MAX_TEXT:
        raise Refused(f"found a change of {len(text)} characters, expected at most {MAX_TEXT}")
    what, equals, rest = text.partition("=")
    name, colon, value = rest.partition(":")
    if what == "default" and equals:
        return _default(text, rest)
    if what not in _PARSERS or not equals:
        raise Refused(f"found {_shown(text)}, expected {', '.join(_FORMS)}{offer(what, (*_PARSERS, 'default'))}")
    if not name or not colon or not value:
        raise Refused(f"found {_shown(text)}, expected {_form(what)}")
    return _PARSERS[what](text, name, value)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Changes, checked against the Nodes and Services of a cluster: see `scenario_of_steps`.

    Nodes and zones are taken down first, then Services are scaled down and get their keys, in the order of the changes,
    but defaults first. `defaulted`: the Services that a default gives keys.
    """

    changes: Sequence[WhatIf]
    all_nodes: Mapping[str, Node]
    zones: Set[str]  # that are down
    down: Set[str]  # names of Nodes
    nodes: Mapping[str, Node]  # those that are left
    defaulted: Set[ObjectKey]

    @property
    def services(self) -> frozenset[ObjectKey]:
        """The Services that the changes concern, besides those on lost Nodes."""
        return _services(self.changes) | self.defaulted

    def view_steps(self, service: ServiceView) -> Steps[ServiceView]:
        """The view of a Service with the changes. Raises Refused if it has fewer Pods than it is scaled down by."""
        if self.down:
            service = yield from _only_steps(service, lambda each: not self._is_lost(each))
        named = [
            each for each in self.changes if isinstance(each, ScaledDown | Rekeyed) and each.service == service.key
        ]
        # At once: 64 changes of one Service would each look at all its endpoints.
        by = sum(change.by for change in named if isinstance(change, ScaledDown))
        if by:
            service = yield from _scaled_down_steps(service, by)
        default = _last_default(self.changes)
        if default is not None and service.key in self.defaulted:
            service = replace(service, policy=guarded(default.policy, service.guards))
        for change in named:
            if isinstance(change, Rekeyed):
                service = replace(service, policy=change.policy and guarded(change.policy, service.guards))
        return service

    def _is_lost(self, endpoint: Endpoint) -> bool:
        """Whether an endpoint is on a Node that is down, or, without a Node object, in such a zone by its slice."""
        if endpoint.node_name in self.all_nodes:
            return endpoint.node_name in self.down
        return endpoint.topology_zone in self.zones


def _last_default(changes: Sequence[WhatIf]) -> Defaulted | None:
    return next((change for change in reversed(changes) if isinstance(change, Defaulted)), None)


def _services(changes: Sequence[WhatIf]) -> frozenset[ObjectKey]:
    return frozenset(change.service for change in changes if isinstance(change, ScaledDown | Rekeyed))


def scenario_of_steps(
    changes: Sequence[WhatIf],
    nodes: Mapping[str, Node],
    services: Collection[ObjectKey],
    without_keys: Set[ObjectKey] | None = None,
) -> Steps[Scenario]:
    """The scenario of these changes, in steps. Raises Refused for a name that does not exist.

    `services`: those that have a ServiceView, with or without keys. `without_keys`: those that a default gives keys;
    None: they are not known here, and a default is refused.
    """
    has_default = _last_default(changes) is not None
    if has_default and without_keys is None:
        raise Refused("`default` is a what-if of `topodns audit`, not of the page")
    names = {change.name for change in changes if isinstance(change, NodeDown)}
    zones = {change.topology_zone for change in changes if isinstance(change, ZoneDown)}
    for name in names - nodes.keys():
        raise Refused(_unknown("Node", name, nodes))
    known: set[str] = set()
    left: dict[str, Node] = {}
    for at, node in enumerate(nodes.values(), 1):
        topology_zone = node.labels.get(ZONE_LABEL, "")
        known.add(topology_zone)
        if topology_zone not in zones and node.name not in names:
            left[node.name] = node
        if at % STEP == 0:
            yield
    for name in zones - known:
        raise Refused(_unknown("zone", name, known - {""}))
    for key in _services(changes).difference(services):
        raise Refused(_unknown("headless Service", str(key), set(map(str, services))))
    defaulted = without_keys if has_default and without_keys is not None else frozenset[ObjectKey]()
    return Scenario(changes, nodes, zones, nodes.keys() - left.keys(), left, defaulted)


def scenario_steps(
    state: ClusterState, nodes: Mapping[str, Node], changes: Sequence[WhatIf], hides: Hides = hides_none
) -> Steps[Scenario]:
    """The scenario of these changes for the Services of a cluster and these Nodes, in steps. Raises Refused, also for a
    Service of a hidden namespace.
    """
    named = _services(changes)
    for name in named:
        if hides(name.namespace):
            raise Refused(
                f"the directive `kubernetes` hides namespace {name.namespace!r}: names of {name} are NXDOMAIN"
            )
    found = {key: service for key in named if (service := state.service(key)) is not None}
    for name, one in found.items():
        if not one.headless:
            raise Refused(f"Service {name} is not headless: expected a headless one, as no other has topology keys")
    known = set(found)
    if named - known:  # the message has the nearest name of all
        for at, (key, service) in enumerate(list(state.services.items()), 1):
            if service.headless and not hides(service.namespace):
                known.add(ObjectKey(*key))
            if at % STEP == 0:
                yield
    without_keys: set[ObjectKey] = set()
    if _last_default(changes) is not None:
        for key in state.policies.without_keys():
            if not hides(key.namespace):
                without_keys.add(key)
            yield
    return (yield from scenario_of_steps(changes, nodes, known, without_keys))


def _node_down(text: str, name: str, value: str) -> WhatIf:
    return NodeDown(_down(text, name, value))


def _zone_down(text: str, name: str, value: str) -> WhatIf:
    return ZoneDown(_down(text, name, value))


def _down(text: str, name: str, value: str) -> str:
    if value != "down":
        raise Refused(f"found {_shown(value)} in {_shown(text)}, expected `down`")
    return name


def _scale(text: str, name: str, value: str) -> WhatIf:
    key = _service(text, name)
    if not _NUMBER.fullmatch(value) or int(value) == 0:
        raise Refused(f"found {_shown(value)} in {_shown(text)}, expected -N, a number of Pods fewer")
    if int(value) > 0:
        raise Refused(f"found {value} in {_shown(text)}, expected -N: on which Nodes more Pods would run is not known")
    return ScaledDown(key, -int(value))


def _keys(text: str, name: str, value: str) -> WhatIf:
    policy = _policy(text, value, KeySource.ANNOTATION)
    return Rekeyed(_service(text, name), None if policy.is_empty else policy)


def _default(text: str, keys: str) -> WhatIf:
    policy = _policy(text, keys, KeySource.DEFAULT)
    if policy.is_empty:
        raise Refused(f"found {_shown(text)}, expected {_form('default')}")
    return Defaulted(policy)


def _policy(text: str, keys: str, source: KeySource) -> Policy:
    policy = parse_list(keys, source)
    if isinstance(policy, InvalidPolicy):
        raise Refused(f"{_shown(text)}: {policy.problem}")
    return Policy((), source) if policy is None else policy


_PARSERS: Final = {"node": _node_down, "zone": _zone_down, "scale": _scale, "keys": _keys}


def _service(text: str, name: str) -> ObjectKey:
    key = parse_service(name)
    if key is None:
        raise Refused(f"found {_shown(name)} in {_shown(text)}, expected NAMESPACE/NAME")
    return key


def _only_steps(service: ServiceView, stays: Callable[[Endpoint], bool]) -> Steps[ServiceView]:
    left: dict[int, list[Endpoint]] = {family: [] for family in FAMILIES}
    for family, endpoints in service.families:
        for at in range(0, len(endpoints), ENDPOINTS):
            left[family] += filter(stays, endpoints[at : at + ENDPOINTS])
            yield
    return replace(service, ipv4=tuple(left[4]), ipv6=tuple(left[6]))


def _scaled_down_steps(service: ServiceView, by: int) -> Steps[ServiceView]:
    """The view without `by` Pods. The endpoints of a Pod, of both families, go together."""
    pods: set[PodKey] = set()
    on_node: dict[str, list[PodKey]] = {}
    for at, endpoint in enumerate(chain.from_iterable(some for _, some in service.families), 1):
        pod = pod_key(endpoint)
        if pod not in pods:
            pods.add(pod)
            on_node.setdefault(pod[0], []).append(pod)
        if at % ENDPOINTS == 0:
            yield
    if by > len(pods):
        raise Refused(f"{service.key} has {len(pods)} ready Pods, fewer than the {by} that scale takes away")
    fullest = [(-len(some), name) for name, some in on_node.items()]
    yield
    heapify(fullest)
    lost = set()
    for done in range(by):
        size, name = fullest[0]
        lost.add(on_node[name].pop())
        heapreplace(fullest, (size + 1, name))
        if done % ENDPOINTS == 0:
            yield
    return (yield from _only_steps(service, lambda each: pod_key(each) not in lost))


def _shown(text: str) -> str:
    return "nothing" if not text else repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _form(what: str) -> str:
    return next(form for form in _FORMS if form.startswith(what))


def _unknown(kind: str, name: str, known: Collection[str]) -> str:
    return f"no {kind} is named {_shown(name)}{offer(name, known) or (': there is none' if not known else '')}"
