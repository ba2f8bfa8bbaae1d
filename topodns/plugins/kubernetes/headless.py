"""Answers made of the endpoints that a client's topology leaves: for headless Services, their ports and endpoints.

`decide` finds the policy, locates the client if that needs it, and chooses endpoints. Its result is a value: the
endpoints, their TTL, and what the choice rests on. Topology filters the name of a single endpoint,
`<hostname or dashed address>.<service>.<namespace>.svc`, only with `filter_hostnames`: the client has chosen already.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import EMPTY_GROUP, Group, Pool
from topodns.cluster.model import ANY_KEY, EndpointPort, InvalidPolicy, Kind, ObjectKey, Policy, Service
from topodns.dns.message import Ede, EdeCode, Option, RRset
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.kubernetes.aliases import with_aliases
from topodns.plugins.kubernetes.endpoints import (
    FAMILIES,
    FAMILY_OF_TYPE,
    NO_BACKENDS,
    any_ready,
    backends_below,
    lots,
    offers_of,
    pools_of,
    service_wire,
    suffix_of,
)
from topodns.plugins.kubernetes.question import (
    NAME_ERRORS,
    NO_DATA,
    NOT_READY,
    Answer,
    Missing,
    ServiceName,
    ZoneQuestion,
    matching,
)
from topodns.plugins.kubernetes.records import GroupOffer, Sections, endpoint_srv_records, ranked_srv_records
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.query.client_claim import read_claim
from topodns.topology.select import (
    MISSES,
    Location,
    OnInvalid,
    Reason,
    Selection,
    UnknownClient,
    is_ranked,
    rank_all,
    ranked,
    select,
    select_while_denied,
)

_UNKNOWN: Final = Location()
_UNLOCATED: Final = Ede(EdeCode.OTHER, "client location unknown")
# Reading an Enum's member costs 0.1 us.
_UNFILTERED, _ANY, _NOERROR = Reason.UNFILTERED, Reason.ANY, Rcode.NOERROR
_new: Final = tuple.__new__  # a NamedTuple's own __new__ is a second call
_CLAIM_OPTIONS: Final = frozenset({int(Option.NODE_IDENTITY), int(Option.CLIENT_SUBNET)})
_ANY_FIRST: Final = (ANY_KEY,)
_LABELLED: Final = frozenset[Kind](("Node", "NodeLocator"))  # the kinds with the labels that keys name
_NO_READY: Final = NAME_ERRORS[Missing.READY]  # read once: a lookup by a member of an Enum costs 0.3 us
_NO_PORT: Final = NAME_ERRORS[Missing.PORT]


class Decision(NamedTuple):
    """The endpoints of a Service for one client."""

    kubernetes: KubernetesZone
    ttl: int  # seconds, of the records
    group: Group = EMPTY_GROUP  # of the first pool that has any for this client
    pool: Pool | None = None  # that pool
    filtered: bool = False  # whether a policy could choose among the endpoints
    policy: Policy | InvalidPolicy | None = None
    selection: Selection | None = None
    location: Location | None = None  # None: the policy is the same for all clients
    claimed: bool = False  # whether the query makes a claim about the location
    ranking: Policy | None = None  # with `srv_priority`, the policy by which every endpoint gets a priority
    ede: Ede | None = None  # of a miss
    objection: Answer | None = None  # the answer for any type, in place of records

    def of(self, pool: Pool) -> Group:
        """The endpoints of any pool of the same Service for this client."""
        if not self.filtered:
            return pool.everyone
        if pool is self.pool:
            return self.group
        if not pool.everyone.endpoints:
            return EMPTY_GROUP
        return selection_of(self.kubernetes, self.policy, pool, self.location).group

    def ranked(self, pool: Pool, priority: int) -> Group:
        """The endpoints of any pool of the same Service with this priority: see `topology.select.ranked`."""
        assert self.ranking is not None
        return ranked(pool, self.ranking, self.location or _UNKNOWN, priority)

    def answer(self, rdatas: tuple[bytes, ...] = (), additional: tuple[RRset, ...] = ()) -> Answer:
        """The answer with these records of the chosen endpoints; NODATA for this client without any."""
        _, ttl, _, _, _, _, selection, location, claimed, _, ede, _ = self
        return _new(Answer, (_NOERROR, rdatas, ttl, additional, (), selection, location, claimed, ede, None, ()))

    def srv_answer(self, sections: Sections) -> Answer:
        """The answer with these SRV records of the chosen endpoints."""
        records, additional = sections
        return self.answer(records[0].rdatas if records else (), additional)


def answer_headless(
    kubernetes: KubernetesZone, key: ObjectKey, name: ServiceName, service: Service, question: ZoneQuestion
) -> Answer:
    """The answer for a headless Service and its ports: what the client's topology leaves of its endpoints."""
    backends = NO_BACKENDS if kubernetes.settings.noendpoints else kubernetes.state.backends(key, service.imported)
    by_port = name.port or name.protocol
    ports = matching(backends.ports, name) if by_port else None
    if not backends.has_ready:
        return _NO_READY
    if ports is not None and not any_ready(backends, ports):
        return with_aliases(kubernetes, name, backends, question, _NO_PORT)
    qtype = question.qtype
    family, is_srv = FAMILY_OF_TYPE.get(qtype), qtype == RRType.SRV
    asked: Iterable[Pool] = ()  # the pools that an answer of this type is made of
    srv_ports: Sequence[EndpointPort] = ()
    if family is not None and ports is None:
        pool = backends.pools[family]
        if not pool.everyone.endpoints and kubernetes.state.synced and not kubernetes.refuses:
            # Empty for all clients: not the decision of a policy.
            return with_aliases(kubernetes, name, backends, question, NO_DATA) if backends.aliases else NO_DATA
        asked = (pool,)
    elif family is not None:
        asked = tuple(pools_of(backends, (family,), ports or ()))
    elif is_srv:  # made as they are read: a Service may have thousands of ports
        srv_ports = backends.ports if ports is None else ports
        asked = pools_of(backends, FAMILIES, srv_ports)
    filtered = None if service.imported else key
    decision = decide(kubernetes, filtered, question, asked, lambda: pools_of(backends, FAMILIES, ports), is_srv)
    if decision.objection is not None:
        answer = decision.objection
    elif is_srv:
        answer = _answer_srv(kubernetes, service, backends, srv_ports, decision, question)
    elif ports is None or family is None:
        answer = decision.answer(decision.group.addresses if decision.group.endpoints else ())
    else:
        answer = decision.answer(backends.joined_addresses(map(decision.of, asked)))
    return with_aliases(kubernetes, name, backends, question, answer) if backends.aliases else answer


def _answer_srv(
    kubernetes: KubernetesZone,
    service: Service,
    backends: Backends,
    ports: Iterable[EndpointPort],
    decision: Decision,
    question: ZoneQuestion,
) -> Answer:
    """The SRV records of these ports, as decided per family and port, and kube-proxy did per ServicePort."""
    if decision.ranking is None:
        offers = (
            offer
            for lot in lots(kubernetes, service, backends, question)
            for offer in offers_of(lot, ports, decision.of)
        )
        return decision.srv_answer(endpoint_srv_records(offers, kubernetes.labels, decision.ttl, question.limit))
    pools = ((backends.pool_for_port(family, port), port.number) for port in ports for family in FAMILIES)
    suffix, priorities = service_wire(service, question), len(decision.ranking.keys)
    return decision.srv_answer(
        ranked_srv_records(pools, priorities, decision.ranked, suffix, kubernetes.labels, decision.ttl, question.limit)
    )


def answer_named(kubernetes: KubernetesZone, name: ServiceName, service: Service, question: ZoneQuestion) -> Answer:
    """Records of an endpoint's name, also of a Service with ClusterIPs; NXDOMAIN if no ready endpoint has the name.

    With `filter_hostnames` the topology policy of a headless Service filters its endpoint names as well.
    """
    backends = backends_below(kubernetes, service, name)
    groups = backends.named(name.endpoint)
    if not groups:
        return NAME_ERRORS[Missing.ENDPOINT]
    filters = kubernetes.topology is not None and kubernetes.topology.filter_hostnames and service.headless
    key = service.key if filters and not service.imported else None
    pools = {family: backends.pool_for_name(family, name.endpoint) for family in groups}
    family = FAMILY_OF_TYPE.get(question.qtype)
    of_type = pools.values() if question.qtype == RRType.SRV else [pools[family]] if family in pools else ()
    decision = decide(kubernetes, key, question, of_type, pools.values)
    if decision.objection is not None:
        return decision.objection
    if question.qtype != RRType.SRV:
        return decision.answer(decision.group.addresses if decision.group.endpoints else ())
    suffix = suffix_of(service, next(iter(backends.cluster_ids), ""), question)
    chosen = {family: decision.of(pool) for family, pool in pools.items()}
    offers = (
        GroupOffer(backends.exposing(family, port, group), port.number, suffix)
        for port in backends.ports
        for family, group in chosen.items()
    )
    return decision.srv_answer(endpoint_srv_records(offers, kubernetes.labels, decision.ttl, question.limit))


def decide(
    kubernetes: KubernetesZone,
    key: ObjectKey | None,
    question: ZoneQuestion,
    asked: Iterable[Pool],
    every: Callable[[], Iterable[Pool]],
    ranks: bool = False,
) -> Decision:
    """The decision for the headless Service with this key. `key` None: no policy filters the answer.

    `asked`: the pools that an answer of the type queried is made of; none is taken after the first one with endpoints
    for this client. `every`: those of all types. `ranks`: the answer may have every endpoint with a priority. There is
    an objection if watches are incomplete, so that locations of clients or endpoints are unknown (SERVFAIL), and for a
    client without a location with `unknown_client refuse` (REFUSED).
    """
    topology = kubernetes.topology
    if key is None or topology is None:
        first = next(iter(asked), None)
        return Decision(kubernetes, kubernetes.settings.ttl, first.everyone if first is not None else EMPTY_GROUP)
    policy = kubernetes.state.policies.get(key)
    ttl, varies, ranking = kubernetes.settings.ttl, False, None
    if isinstance(policy, Policy):
        varies = policy.keys[:1] != _ANY_FIRST
        ttl = kubernetes.ttl_under_policy if policy.ttl is None else policy.ttl
        ranking = policy if ranks and topology.srv_priority and is_ranked(policy) else None
    location, claimed = None, False
    if varies and (kubernetes.refuses or not kubernetes.state.synced):
        objection, location, claimed = _objection(kubernetes, policy, question, every)
        if objection is not None:
            return Decision(kubernetes, ttl, objection=objection)
    selection, chosen = None, None
    for pool in asked:
        if not pool.everyone.endpoints:
            continue  # empty for all clients: not the decision of a policy
        if varies and location is None:
            location, claimed = _located(kubernetes, question)
        found = selection_of(kubernetes, policy, pool, location)
        if found.group.endpoints:
            selection, chosen = found, pool
            break
        selection = selection or found
    if selection is None:
        return Decision(kubernetes, ttl, filtered=True, policy=policy, location=location, claimed=claimed)
    if chosen is None:
        ede = _miss(policy, selection, location)
        return Decision(
            kubernetes,
            ttl,
            filtered=True,
            policy=policy,
            selection=selection,
            location=location,
            claimed=claimed,
            ede=ede,
        )
    group = selection.group
    if ranking is not None:
        selection = rank_all(selection, chosen, ranking, location or _UNKNOWN)
    chosen_so = (kubernetes, ttl, group, chosen, True, policy, selection, location, claimed, ranking, None, None)
    return _new(Decision, chosen_so)


def _miss(policy: Policy | InvalidPolicy | None, selection: Selection, location: Location | None) -> Ede | None:
    """The extended error where a policy leaves a client without endpoints."""
    if selection.reason not in MISSES:
        return None
    if isinstance(policy, InvalidPolicy):
        return Ede(EdeCode.OTHER, f"invalid topology keys: {policy.problem}")
    if location is None or not location.node_name:
        return _UNLOCATED
    tried = ", ".join(tried_key for tried_key, _ in selection.tried)
    return Ede(EdeCode.OTHER, f"no endpoint matches topologyKeys {tried} for node {location.node_name}")


def selection_of(
    kubernetes: KubernetesZone, policy: Policy | InvalidPolicy | None, pool: Pool, location: Location | None
) -> Selection:
    """The endpoints of `pool` for a client at `location`, also while RBAC denies Nodes or Pods.

    `location` None: the policy is the same for all clients.
    """
    if location is None:
        if policy is None:
            return Selection(pool.everyone, _UNFILTERED)
        if isinstance(policy, Policy):
            return Selection(pool.everyone, _ANY, ANY_KEY)
    topology = kubernetes.topology
    unknown_client = topology.unknown_client if topology is not None else UnknownClient.STRICT
    on_invalid = topology.on_invalid if topology is not None else OnInvalid.IGNORE
    denied = kubernetes.state.denied
    if denied and location is not None and topology is not None and not denied.isdisjoint(topology.placing_kinds):
        labels_denied = location.node is None and not denied.isdisjoint(_LABELLED)
        return select_while_denied(pool, policy, location, labels_denied, unknown_client, on_invalid)
    return select(pool, policy, location or _UNKNOWN, unknown_client, on_invalid)


def _located(kubernetes: KubernetesZone, question: ZoneQuestion) -> tuple[Location, bool]:
    """(The client's location by its claims and its address, whether the query makes a claim).

    Raises BadOption for a malformed Client Subnet from a trusted source.
    """
    edns, locator, address = question.edns, kubernetes.locator, question.address
    if locator is None:
        return _UNKNOWN, False
    if question.claim is not None:
        return locator.locate(address, question.claim), True
    if edns is None or not edns.options or _CLAIM_OPTIONS.isdisjoint(code for code, _ in edns.options):
        return locator.locate(address), False
    return locator.locate(address, read_claim(edns, locator.claims.trusts(address))), True


def _objection(
    kubernetes: KubernetesZone,
    policy: Policy | InvalidPolicy | None,
    question: ZoneQuestion,
    every: Callable[[], Iterable[Pool]],
) -> tuple[Answer | None, Location | None, bool]:
    """(SERVFAIL or REFUSED in place of records, else None; the client's location; whether the query makes a claim).

    The location is not needed if there is no endpoint of any type, or the answer is SERVFAIL. Endpoints of any type
    make the location count, so that no client shares the answer of another one that is refused.
    """
    if not kubernetes.state.synced:
        return NOT_READY, None, False
    filled = [pool for pool in every() if pool.everyone.endpoints]
    if not filled:
        return None, None, False
    location, claimed = _located(kubernetes, question)
    if any(selection_of(kubernetes, policy, pool, location).reason is not Reason.UNKNOWN_CLIENT for pool in filled):
        return None, location, claimed
    selection = Selection(EMPTY_GROUP, Reason.UNKNOWN_CLIENT)
    refused = Answer(Rcode.REFUSED, selection=selection, location=location, claimed=claimed, ede=_UNLOCATED)
    return refused, location, claimed
