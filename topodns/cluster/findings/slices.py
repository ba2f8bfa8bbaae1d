"""Findings about EndpointSlices and Services that do not find each other: Services without a slice, or without one of a
family, and slices whose label names no Service of their namespace.
"""

from bisect import insort
from collections.abc import Generator, Iterator, Sequence
from typing import Final, NamedTuple

from topodns.cluster.findings.finding import CLUSTER, MAX_NAMED, Finding
from topodns.cluster.model import EndpointSlice, ObjectKey
from topodns.cluster.slices import MOST_COUNTED, SliceOwner
from topodns.cluster.state import ClusterState
from topodns.cluster.unknown_names import similar_steps

MAX_NAMESPACES: Final = 100  # whose first strays are named
LOOKED_AT: Final = 500  # slices in one step: about 0.3 ms
SERVICES: Final = 200  # likewise
SERVICE_LABEL: Final = "kubernetes.io/service-name"


class Stray(NamedTuple):
    """An EndpointSlice, or an Endpoints, of no Service that exists; `meant`: the Service that may be meant."""

    namespace: str
    name: str
    service_name: str  # in its label; "": it has none
    of_endpoints: bool = False  # it is an Endpoints, which has the name of its Service
    meant: ObjectKey | None = None

    def finding(self) -> Finding:
        """The finding about this slice."""
        text, key = f"{self._problem()}{self._offer()}", ObjectKey(self.namespace, self.name)
        of_slice = None if self.of_endpoints else key
        return Finding(CLUSTER, "no_service", text, of_namespace=self.namespace, of_slice=of_slice)

    def _problem(self) -> str:
        if self.of_endpoints:
            return f"Endpoints {self.namespace}/{self.name} has the name of no Service"
        if not self.service_name:
            return f"EndpointSlice {self.namespace}/{self.name} has no label {SERVICE_LABEL}, so it is of no Service"
        return f"EndpointSlice {self.namespace}/{self.name} names the Service {self.service_name}, which does not exist"

    def _offer(self) -> str:
        if self.meant is None:
            return ""
        if self.meant.namespace == self.namespace:
            return f", did you mean {self.meant.name}?"
        return f" in namespace {self.namespace}, did you mean {self.meant}?"

    def clause(self, namespace: str) -> str:
        """`; EndpointSlice NAME of the namespace names OTHER`, behind a sentence about a Service of `namespace`."""
        where = "the namespace" if namespace == self.namespace else f"namespace {self.namespace}"
        if self.of_endpoints:
            return f"; there is an Endpoints {self.name} of {where}"
        names = f"names {self.service_name}" if self.service_name else "has no such label"
        return f"; EndpointSlice {self.name} of {where} {names}"


Strays = Sequence[Stray]


def stray_steps(state: ClusterState) -> Generator[None, None, Strays]:
    """The slices of no Service, in steps: the first MAX_NAMED by name of each of the first namespaces.

    Custom controllers of an API server write slices without the label: these are among them only where a Service of the
    namespace lacks slices. None where a Service may exist that is not known.
    """
    if state.selected or not state.known.issuperset(("Service", "EndpointSlice")):
        return ()
    found: dict[str, list[Stray]] = {}
    for at, key in enumerate(state.keys("EndpointSlice"), 1):
        one = state.held("EndpointSlice", key)
        if isinstance(one, EndpointSlice) and _is_stray(state, one):
            _add(found, one)
        if at % LOOKED_AT == 0:
            yield
    return (yield from _meant_steps(state, found)) if found else ()


def _is_stray(state: ClusterState, one: EndpointSlice) -> bool:
    exists = (one.namespace, one.service_name) in state.services
    return not (exists or one.imported or state.left_out.cuts(one.namespace))


def _add(found: dict[str, list[Stray]], one: EndpointSlice) -> None:
    if one.namespace not in found and len(found) == MAX_NAMESPACES:
        return
    name = one.service_name if one.mirrored else one.name
    stray = Stray(one.namespace, name, one.service_name, one.mirrored)
    of_namespace = found.setdefault(one.namespace, [])
    if stray not in of_namespace:  # an Endpoints is a slice of each subset and family
        insort(of_namespace, stray)
        del of_namespace[MAX_NAMED:]


class _Candidates:
    """The Services that strays of these namespaces may be meant for."""

    def __init__(self, found: dict[str, list[Stray]]) -> None:
        self.names: dict[str, list[str]] = {namespace: [] for namespace in found}
        self.lacking: dict[str, dict[str, None]] = {namespace: {} for namespace in found}  # those that lack slices
        self.elsewhere: dict[str, ObjectKey] = {}  # by the name in a label, one that lacks slices
        self._wanted = {each.service_name for strays in found.values() for each in strays}

    def add(self, state: ClusterState, key: ObjectKey) -> None:
        near, wanted = key.namespace in self.names, key.name in self._wanted
        if not near and not wanted:
            return
        lacks = lacks_slices(state, key)
        if near:
            self.names[key.namespace].append(key.name)
        if near and lacks:
            self.lacking[key.namespace][key.name] = None
        if wanted and lacks:
            self.elsewhere.setdefault(key.name, key)

    def meant_steps(self, stray: Stray) -> Generator[None, None, ObjectKey | None]:
        namespace, word = stray.namespace, stray.service_name
        lacking = self.lacking[namespace]
        if not word:
            parts = stray.name.split("-")  # the name of a slice begins with that of its Service, as a rule
            starts = ("-".join(parts[:count]) for count in range(len(parts), 0, -1))
            return next((ObjectKey(namespace, each) for each in starts if each in lacking), None)
        if name := (yield from similar_steps(word, lacking)):
            return ObjectKey(namespace, name)
        if word in self.elsewhere:
            return self.elsewhere[word]
        name = yield from similar_steps(word, self.names[namespace])
        return ObjectKey(namespace, name) if name else None


def _meant_steps(state: ClusterState, found: dict[str, list[Stray]]) -> Generator[None, None, Strays]:
    """The strays with the Services that may be meant, in order."""
    candidates = _Candidates(found)
    for at, one in enumerate(tuple(state.services.values()), 1):
        candidates.add(state, one.key)
        if at % SERVICES == 0:
            yield
    strays: list[Stray] = []
    for namespace in sorted(found):
        for each in found[namespace]:
            if each.service_name or state.of_files or candidates.lacking[namespace]:
                meant = yield from candidates.meant_steps(each)
                strays.append(each._replace(meant=meant))
            yield
    return strays


def at_hand(strays: Strays, key: ObjectKey) -> str:
    """The clause about the slice that may be meant for a Service that lacks slices; "" for none.

    Else about the first one of its namespace that may be meant for any Service.
    """
    of_service = (each for each in strays if each.meant == key)
    of_any = (each for each in strays if each.meant is None and each.namespace == key.namespace)
    one = next(of_service, None) or next(of_any, None)
    return one.clause(key.namespace) if one is not None else ""


def at_hand_steps(state: ClusterState, key: ObjectKey) -> Generator[None, None, str]:
    """As `at_hand`, in steps; "" of a Service that lacks no slices."""
    return at_hand((yield from stray_steps(state)), key) if lacks_slices(state, key) else ""


def lacks_slices(state: ClusterState, key: ObjectKey) -> bool:
    """Whether a Service that would have EndpointSlices has none, or none of one of its families."""
    service = state.service(key)
    if service is None or service.external_name is not None:
        return False
    return _has_no_slice(state, key) or bool(families_without_slice(state, key))


def slice_findings(state: ClusterState, key: ObjectKey, strays: Strays) -> Iterator[Finding]:
    """The findings about the EndpointSlices that a Service lacks."""
    if _has_no_slice(state, key):
        yield Finding(key, "no_slice", f"it has {no_slice(key.name)}{at_hand(strays, key)}")
    for family in families_without_slice(state, key):
        text = f"it has {no_slice_of(family, key.name)}{at_hand(strays, key)}"
        yield Finding(key, "no_slice", text, family=int(family.removeprefix("IPv")))


def _has_no_slice(state: ClusterState, key: ObjectKey) -> bool:
    """Whether a Service has no EndpointSlice; no where some of its namespace are not known."""
    known = "EndpointSlice" in state.known and not state.left_out.cuts(key.namespace)
    return known and not state.slice_table.owned.counted(SliceOwner(key))


def families_without_slice(state: ClusterState, key: ObjectKey) -> tuple[str, ...]:
    """The families of spec.ipFamilies of which a Service has no EndpointSlice, though it has one of the other family.

    None of a Service without a selector: its slices are not made by the controller, which makes one of each family,
    if an empty one. None where slices are not known, or do not all count.
    """
    service = state.service(key)
    if service is None or not service.ip_families or "EndpointSlice" not in state.known:
        return ()
    slices = state.slice_table.owned.counted(SliceOwner(key))
    if not slices or len(slices) >= MOST_COUNTED or state.left_out.cuts(key.namespace):
        return ()
    types = {one.address_type for one in slices}
    return tuple(family for family in service.ip_families if family not in types and "FQDN" not in types)


def no_slice(service: str) -> str:
    """The clause about the EndpointSlices that a Service of this name lacks."""
    return f"no EndpointSlice, which would have the label kubernetes.io/service-name={service}"


def no_slice_of(family: str, service: str) -> str:
    """The clause about the EndpointSlices of one family that a Service of this name lacks."""
    return (
        f"no EndpointSlice of addressType {family}, though spec.ipFamilies has it; one would have the label "
        f"kubernetes.io/service-name={service}"
    )
