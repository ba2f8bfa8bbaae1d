"""The topology decision of one query: finds the policy, locates the client if the policy needs it, chooses endpoints.

The result is a value: the endpoints, and the answer with its scope, dependencies and TTL, and the reason if it is
empty.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from topodns.cluster.endpoints import EMPTY_GROUP, Group, Pool
from topodns.cluster.model import ANY_KEY, InvalidPolicy, Kind, ObjectKey, Policy
from topodns.dependency import node_fact
from topodns.dns.message import Ede, EdeCode, Option, Response
from topodns.dns.rrtype import Rcode
from topodns.plugins.kubernetes.not_ready import not_ready
from topodns.plugins.kubernetes.records import PLUGIN, Facts
from topodns.plugins.kubernetes.zone import KubernetesZone, ZoneQuestion
from topodns.plugins.topology import TopologySettings
from topodns.query.client_claim import read_claim
from topodns.query.plugin import Resolution, Scope
from topodns.topology.ranking import is_ranked, rank_all, ranked
from topodns.topology.select import Location, OnInvalid, Reason, Selection, UnknownClient, select, select_while_denied

MAX_MISS_TTL: Final = 5  # seconds that a topology miss may be cached: a Pod on the client's Node may start any moment

_UNKNOWN: Final = Location()
_MISSES: Final = frozenset({Reason.NO_MATCH, Reason.UNKNOWN_CLIENT, Reason.DENIED})
_UNLOCATED_REASONS: Final = frozenset({Reason.UNKNOWN_CLIENT, Reason.UNKNOWN_CLIENT_ALL})
_UNLOCATED: Final = Ede(EdeCode.OTHER, "client location unknown")
# Reading an Enum's member costs 0.1 us.
_EVERYONE, _NODE, _CLIENT = Scope.EVERYONE, Scope.NODE, Scope.CLIENT
_UNKNOWN_CLIENT_ALL, _REFUSE = Reason.UNKNOWN_CLIENT_ALL, UnknownClient.REFUSE
_CLAIM_OPTIONS: Final = frozenset({int(Option.NODE_IDENTITY), int(Option.CLIENT_SUBNET)})
_ANY_FIRST: Final = (ANY_KEY,)
_LABELLED: Final = frozenset[Kind](("Node", "NodeLocator"))  # the kinds with the labels that keys name


class Decision(NamedTuple):
    """The topology decision about one answer.

    `resolution` is NODATA for this client, to which the records of the chosen endpoints are to be added; where it is
    `final`, it is the answer for any type. `group`: the endpoints of the first pool that has any, for this client.
    `ranking`: with `srv_priority`, the policy by which every endpoint gets a priority; else None.
    """

    resolution: Resolution
    group: Group
    ttl: int  # seconds, of the records
    kubernetes: KubernetesZone
    policy: Policy | InvalidPolicy | None = None
    filtered: bool = False  # whether a policy could choose among the endpoints
    final: bool = False
    ranking: Policy | None = None

    def of(self, pool: Pool) -> Group:
        """The endpoints of any pool of the same Service for this client."""
        if not self.filtered:
            return pool.everyone
        if not pool.everyone.endpoints:
            return EMPTY_GROUP
        return _selection(self.kubernetes, self.policy, pool, self.resolution.location).group

    def ranked(self, ranking: Policy, pool: Pool, priority: int) -> Group:
        """The endpoints of any pool of the same Service with this priority: see `topology.ranking.ranked`."""
        return ranked(pool, ranking, self.resolution.location or _UNKNOWN, priority)


class Pools(NamedTuple):
    """The endpoints behind a name, as pools that are made when they are read."""

    asked: Callable[[], Iterable[Pool]]  # those that an answer of the type queried is made of
    every: Callable[[], Iterable[Pool]]  # those of all types


class _Case(NamedTuple):
    """A question about a headless Service, and the policy that may filter its endpoints."""

    kubernetes: KubernetesZone
    key: ObjectKey
    policy: Policy | InvalidPolicy | None
    question: ZoneQuestion
    facts: Facts
    pools: Pools

    @property
    def varies(self) -> bool:
        """Whether the policy chooses by the client's location."""
        return isinstance(self.policy, Policy) and self.policy.keys[:1] != _ANY_FIRST

    @property
    def ttl(self) -> int:
        if not isinstance(self.policy, Policy):
            return self.kubernetes.settings.ttl
        return self.kubernetes.ttl_under_policy if self.policy.ttl is None else self.policy.ttl


class _Place(NamedTuple):
    """The client's location, None if it was not needed, and whether the query makes a claim about it."""

    location: Location | None = None
    claimed: bool = False


_NOT_NEEDED: Final = _Place()


def decide(
    kubernetes: KubernetesZone,
    key: ObjectKey | None,
    question: ZoneQuestion,
    facts: Facts,
    pools: Pools,
    ranks: bool = False,
) -> Decision:
    """The decision for the headless Service with this key. `key` None: no policy filters the answer.

    Of `pools.asked` none are taken after the first one with endpoints for this client. `ranks`: the answer may have
    every endpoint with a priority. The decision is final if SERVFAIL, while incomplete watches leave locations of
    clients or endpoints unknown, or REFUSED, for a client without a location with `unknown_client refuse`.
    """
    topology = kubernetes.topology
    if key is None or topology is None:
        group = next((pool.everyone for pool in pools.asked()), EMPTY_GROUP)
        resolution = Resolution(Response(Rcode.NOERROR), PLUGIN, facts=facts)
        return Decision(resolution, group, kubernetes.settings.ttl, kubernetes)
    policy = kubernetes.state.policies.get(key)
    case = _Case(kubernetes, key, policy, question, facts, pools)
    ttl, place = case.ttl, _NOT_NEEDED
    if case.varies and (topology.unknown_client is _REFUSE or not kubernetes.state.synced):
        objection, place = _objection(case)
        if objection is not None:
            return Decision(objection, EMPTY_GROUP, ttl, kubernetes, policy, True, True)
    ranking = _ranking(topology, policy) if ranks else None
    selection, place = _first_selection(case, place, ranking)
    resolution = _resolution(facts, selection, place)
    if selection is None:
        return Decision(resolution, EMPTY_GROUP, ttl, kubernetes, policy, True)
    if not selection.group.endpoints or selection.reason is _UNKNOWN_CLIENT_ALL:
        _explain(case, resolution)
    return Decision(resolution, selection.group, ttl, kubernetes, policy, True, ranking=ranking)


def _first_selection(case: _Case, place: _Place, ranking: Policy | None) -> tuple[Selection | None, _Place]:
    """(The selection of the first pool asked for that has endpoints for this client, else of the first that has any for
    some client, else None; the client's place, if that or `place` needed it).
    """
    first = None
    for pool in case.pools.asked():
        if not pool.everyone.endpoints:
            continue  # empty for all clients: not the decision of a policy
        if place.location is None and case.varies:
            place = _located(case.kubernetes, case.question)
        found = _selection(case.kubernetes, case.policy, pool, place.location)
        if found.group.endpoints:
            return found if ranking is None else rank_all(found, pool, ranking, place.location or _UNKNOWN), place
        first = first or found
    return first, place


def _ranking(topology: TopologySettings, policy: Policy | InvalidPolicy | None) -> Policy | None:
    """The policy if it ranks the endpoints; None if it selects some of them."""
    return policy if topology.srv_priority and isinstance(policy, Policy) and is_ranked(policy) else None


def is_miss(resolution: Resolution) -> bool:
    """Whether endpoints are ready, but the policy left none for this client."""
    selection = resolution.selection
    return selection is not None and not resolution.response.answer and selection.reason in _MISSES


def _selection(
    kubernetes: KubernetesZone, policy: Policy | InvalidPolicy | None, pool: Pool, location: Location | None
) -> Selection:
    """The endpoints of `pool` for a client at `location`, also while RBAC denies Nodes or Pods.

    `location` None: the policy is the same for all clients.
    """
    if location is None:
        if policy is None:
            return Selection(pool.everyone, Reason.UNFILTERED)
        if isinstance(policy, Policy):
            return Selection(pool.everyone, Reason.ANY, ANY_KEY)
    topology = kubernetes.topology
    unknown_client = topology.unknown_client if topology is not None else UnknownClient.STRICT
    on_invalid = topology.on_invalid if topology is not None else OnInvalid.IGNORE
    denied = kubernetes.state.denied
    if denied and location is not None and topology is not None and not denied.isdisjoint(topology.placing_kinds):
        unlabelled = location.node is None and not denied.isdisjoint(_LABELLED)
        return select_while_denied(pool, policy, location, unlabelled, unknown_client, on_invalid)
    return select(pool, policy, location or _UNKNOWN, unknown_client, on_invalid)


def _located(kubernetes: KubernetesZone, question: ZoneQuestion) -> _Place:
    """The client's location by its claims and its address.

    Raises BadOption for a malformed Client Subnet from a trusted source.
    """
    edns, locator, address = question.query.edns, kubernetes.locator, question.client.address
    if locator is None:
        return _Place(_UNKNOWN)
    if edns is None or not edns.options or _CLAIM_OPTIONS.isdisjoint(code for code, _ in edns.options):
        return _Place(locator.locate(address))
    return _Place(locator.locate(address, read_claim(edns, locator.claims.trusts(address))), True)


def _objection(case: _Case) -> tuple[Resolution | None, _Place]:
    """(SERVFAIL or REFUSED in place of records, else None; the client's place).

    The place is not needed if there is no endpoint of any type, or the answer is SERVFAIL. Endpoints of any type make
    the location count, so that no client shares the answer of another one that is refused.
    """
    kubernetes = case.kubernetes
    if not kubernetes.state.synced:
        return not_ready(case.facts), _NOT_NEEDED
    filled = [pool for pool in case.pools.every() if pool.everyone.endpoints]
    if not filled:
        return None, _NOT_NEEDED
    place = _located(kubernetes, case.question)
    selections = (_selection(kubernetes, case.policy, pool, place.location) for pool in filled)
    if any(selection.reason is not Reason.UNKNOWN_CLIENT for selection in selections):
        return None, place
    resolution = _resolution(case.facts, Selection(EMPTY_GROUP, Reason.UNKNOWN_CLIENT), place)
    _explain(case, resolution)
    resolution.response = Response(Rcode.REFUSED, flags=0, ede=_UNLOCATED)
    return resolution, place


def _resolution(facts: Facts, selection: Selection | None, place: _Place) -> Resolution:
    """NODATA with the scope and the dependencies of the location, if that was needed."""
    location, claimed = place
    if location is None:
        return Resolution(Response(Rcode.NOERROR), PLUGIN, _EVERYONE, facts, selection)
    if location.node_name:
        facts = (*facts, node_fact(location.node_name))
    # A claim that is not trusted counts as well: the same octets from another source may be trusted.
    return Resolution(Response(Rcode.NOERROR), PLUGIN, _CLIENT if claimed else _NODE, facts, selection, location)


def _explain(case: _Case, resolution: Resolution) -> None:
    """Add to the resolution the metric labels of a miss or of a client without a location, and the extended DNS error
    of a miss.
    """
    limiters, policy = case.kubernetes.limiters, case.policy
    selection, location = resolution.selection, resolution.location
    if selection is None:
        return
    if selection.reason in _UNLOCATED_REASONS:
        resolution.prefix = limiters.prefix(case.question.client.address)
    if selection.reason not in _MISSES:
        return
    resolution.missed = limiters.service(case.key)
    if isinstance(policy, InvalidPolicy):
        ede = Ede(EdeCode.OTHER, f"invalid topology keys: {policy.problem}")
    elif location is None or not location.node_name:
        ede = _UNLOCATED
    else:
        tried = ", ".join(tried_key for tried_key, _ in selection.tried)
        ede = Ede(EdeCode.OTHER, f"no endpoint matches topologyKeys {tried} for node {location.node_name}")
    resolution.response.ede = ede
