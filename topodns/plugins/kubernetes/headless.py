"""Answers made of the endpoints that a client's topology leaves: for headless Services, their ports and endpoints.

`rule_of` finds the policy of the name and locates the client if that needs it; `Rule.selection` chooses by it. Of a
Service's names, `_near.SERVICE` always has a policy and `_all.SERVICE` none. Topology filters the name of a single
endpoint, `<hostname or dashed address>.<service>.<namespace>.svc`, only with `filter_hostnames`: the client has chosen
already.
"""

from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple

from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import EMPTY_GROUP, Group, Pool
from topodns.cluster.model import (
    ANY_KEY,
    HOSTNAME_LABEL,
    NO_KEYS,
    ZONE_LABEL,
    EndpointPort,
    InvalidPolicy,
    KeySource,
    Kind,
    ObjectKey,
    Policy,
    Service,
)
from topodns.cluster.state import ClusterState
from topodns.dependency import label_fact
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
    ALL,
    NAME_ERRORS,
    NO_DATA,
    NOT_READY,
    Answer,
    Facts,
    Missing,
    ServiceName,
    ZoneQuestion,
    matching,
)
from topodns.plugins.kubernetes.records import GroupOffer, Sections, endpoint_srv_records, ranked_srv_records
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.query.client_claim import read_claim
from topodns.topology.guards import bounded
from topodns.topology.select import (
    MISSES,
    Location,
    OnInvalid,
    Reason,
    Selection,
    UnknownClient,
    is_ranked,
    is_same_for_all,
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
_NEAR: Final = Policy((HOSTNAME_LABEL, ZONE_LABEL, ANY_KEY), KeySource.NEAR)

AnyPolicy = Policy | InvalidPolicy | None
_Choice = tuple[Selection | None, Pool | None]


class Rule(NamedTuple):
    """How the endpoints of one headless Service are chosen for one client."""

    kubernetes: KubernetesZone
    ttl: int  # seconds, of the records
    filters: bool = False  # whether a policy may choose among the endpoints; if not, nor does a bound
    policy: AnyPolicy = None
    location: Location | None = None  # None: the choice is the same for all clients
    claimed: bool = False  # whether the query makes a claim about the location
    ranking: Policy | None = None  # with `srv_priority`, the policy by which every endpoint gets a priority
    bound: "_Bound | None" = None

    def selection(self, pool: Pool) -> Selection:
        """The endpoints of a pool of the Service for the client."""
        found = selection_of(self.kubernetes, self.policy, pool, self.location)
        return found if self.bound is None else found._replace(group=self.bounded(found.group))

    def bounded(self, group: Group) -> Group:
        """The endpoints of a group that max-endpoints leaves the client."""
        return group if self.bound is None else self.bound.group(group)

    @property
    def for_one_client(self) -> bool:
        """Whether the choice is for this query's client alone, not for all on its Node."""
        return self.claimed or (self.bound is not None and not self.bound.by_node)

    def group(self, pool: Pool) -> Group:
        """The endpoints of a pool of the Service for the client."""
        if not self.filters:
            return pool.everyone
        return self.selection(pool).group if pool.everyone.endpoints else EMPTY_GROUP

    def ranked(self, pool: Pool, priority: int) -> Group:
        """The endpoints of a pool of the Service with this priority: see `topology.select.ranked`."""
        assert self.ranking is not None
        return ranked(pool, self.ranking, self.location or _UNKNOWN, priority)

    def first(self, pools: Iterable[Pool]) -> _Choice:
        """(The first selection with endpoints, its pool); without any, (the first selection of all, None).

        (None, None) if all pools are empty for all clients: not the decision of a policy.
        """
        first = None
        for pool in pools:
            if pool.everyone.endpoints:
                found = self.selection(pool)
                if found.group.endpoints:
                    return found, pool
                first = first or found
        return first, None

    def answer(self, choice: _Choice, rdatas: tuple[bytes, ...] = (), additional: tuple[RRset, ...] = ()) -> Answer:
        """The answer with these records of the chosen endpoints; NODATA for this client without any."""
        _, ttl, filters, policy, location, claimed, ranking, bound = self
        selection, pool = choice
        if not filters or selection is None:  # with `refuse`, the location says that this client is not refused
            counts = location if self.kubernetes.refuses else None
            return _new(Answer, (_NOERROR, rdatas, ttl, additional, (), None, counts, claimed, None, None, ()))
        ede = None
        if pool is None:
            ede = _miss(policy, selection, location)
        elif ranking is not None:
            selection = rank_all(selection, pool, ranking, location or _UNKNOWN)
        facts = _load_facts(policy) if isinstance(policy, Policy) and policy.max_load is not None else ()
        own = claimed if bound is None else self.for_one_client
        return _new(Answer, (_NOERROR, rdatas, ttl, additional, (), selection, location, own, ede, None, facts))


class _Bound(NamedTuple):
    """The annotation `topodns.io/max-endpoints` of a Service, for one client."""

    most: int
    service: ObjectKey
    client: str  # the name of its Node, else its address
    by_node: bool

    def group(self, group: Group) -> Group:
        return bounded(group, self.most, self.service, self.client)

    def pool(self, pool: Pool) -> Pool:
        """A pool of these endpoints alone."""
        group = self.group(pool.everyone)
        return pool if group is pool.everyone else pool.part(group)


def answer_headless(
    kubernetes: KubernetesZone, key: ObjectKey, name: ServiceName, service: Service, question: ZoneQuestion
) -> Answer:
    """The answer for a headless Service, its ports and views: what the client's topology leaves of its endpoints."""
    backends = NO_BACKENDS if kubernetes.settings.noendpoints else kubernetes.state.backends(key, service.imported)
    ports = matching(backends.ports, name) if name.port or name.protocol else None
    if not backends.has_ready:
        return NO_DATA if name.view and ports is None else _NO_READY
    if ports is not None and not any_ready(backends, ports):
        return with_aliases(kubernetes, name, backends, question, _NO_PORT)
    qtype = question.qtype
    family, is_srv = FAMILY_OF_TYPE.get(qtype), qtype == RRType.SRV
    asked: Iterable[Pool] = ()  # the pools that an answer of this type is made of
    srv_ports: Sequence[EndpointPort] = ()
    unsure = kubernetes.refuses or not kubernetes.state.synced
    if family is not None and ports is None:
        pool = backends.pools[family]
        if not pool.everyone.endpoints and not unsure:
            # Empty for all clients: not the decision of a policy.
            return with_aliases(kubernetes, name, backends, question, NO_DATA) if backends.aliases else NO_DATA
        asked = (pool,)
    elif family is not None:
        asked = tuple(pools_of(backends, (family,), ports or ()))
    elif is_srv:  # made as they are read: a Service may have thousands of ports
        srv_ports = backends.ports if ports is None else ports
        asked = pools_of(backends, FAMILIES, srv_ports)
    rule = rule_of(kubernetes, key, question, name.view, is_srv, service.imported)
    answer = _objection(rule, pools_of(backends, FAMILIES, ports)) if unsure else None
    if answer is None:
        choice = rule.first(asked)
        if is_srv:
            answer = _answer_srv(rule, service, backends, srv_ports, choice, question)
        elif ports is None or family is None:
            answer = rule.answer(choice, _addresses(choice))
        else:
            answer = rule.answer(choice, backends.joined_addresses(map(rule.group, asked)))
    return with_aliases(kubernetes, name, backends, question, answer) if backends.aliases else answer


def _addresses(choice: _Choice) -> tuple[bytes, ...]:
    selection, pool = choice
    return () if selection is None or pool is None else selection.group.addresses


def _answer_srv(
    rule: Rule,
    service: Service,
    backends: Backends,
    ports: Iterable[EndpointPort],
    choice: _Choice,
    question: ZoneQuestion,
) -> Answer:
    """The SRV records of these ports, as decided per family and port, and kube-proxy did per ServicePort."""
    kubernetes, (selection, first) = rule.kubernetes, choice
    if rule.ranking is None:

        def pick(pool: Pool) -> Group:
            return selection.group if pool is first and selection is not None else rule.group(pool)

        of_all = backends if service.imported and rule.filters else None
        every = lots(kubernetes, service, backends, question)
        offers = (offer for lot in every for offer in offers_of(lot, ports, pick, of_all))
        return _srv_answer(rule, choice, endpoint_srv_records(offers, kubernetes.labels, rule.ttl, question.limit))
    bounded_pools: dict[int, Pool] = {}  # by identity: many ports may have the same endpoints

    def pool_of(family: int, port: EndpointPort) -> Pool:
        pool = backends.pool_for_port(family, port)
        if rule.bound is None:
            return pool
        if id(pool) not in bounded_pools:
            bounded_pools[id(pool)] = rule.bound.pool(pool)
        return bounded_pools[id(pool)]

    pools = ((pool_of(family, port), port.number) for port in ports for family in FAMILIES)
    suffix, priorities = service_wire(service, question), len(rule.ranking.keys)
    return _srv_answer(
        rule,
        choice,
        ranked_srv_records(pools, priorities, rule.ranked, suffix, kubernetes.labels, rule.ttl, question.limit),
    )


def _srv_answer(rule: Rule, choice: _Choice, sections: Sections) -> Answer:
    """The answer with these SRV records of the chosen endpoints."""
    records, additional = sections
    return rule.answer(choice, records[0].rdatas if records else (), additional)


def answer_named(kubernetes: KubernetesZone, name: ServiceName, service: Service, question: ZoneQuestion) -> Answer:
    """Records of an endpoint's name, also of a Service with ClusterIPs; NXDOMAIN if no ready endpoint has the name.

    With `filter_hostnames` the topology policy of a headless Service filters its endpoint names as well.
    """
    backends = backends_below(kubernetes, service, name)
    groups = backends.named(name.endpoint)
    if not groups:
        return NAME_ERRORS[Missing.ENDPOINT]
    filters = kubernetes.topology is not None and kubernetes.topology.filter_hostnames and service.headless
    key = service.key if filters else None
    pools = {family: backends.pool_for_name(family, name.endpoint) for family in groups}
    family = FAMILY_OF_TYPE.get(question.qtype)
    of_type = pools.values() if question.qtype == RRType.SRV else [pools[family]] if family in pools else ()
    rule = rule_of(kubernetes, key, question, imported=service.imported)
    rule = rule._replace(bound=None)  # the client has chosen an endpoint
    if (kubernetes.refuses or not kubernetes.state.synced) and (objection := _objection(rule, pools.values())):
        return objection
    choice = rule.first(of_type)
    if question.qtype != RRType.SRV:
        return rule.answer(choice, _addresses(choice))
    suffix = suffix_of(service, next(iter(backends.cluster_ids), ""), question)
    chosen = {family: rule.group(pool) for family, pool in pools.items()}
    offers = (
        GroupOffer(backends.exposing(family, port, group), port.number, suffix)
        for port in backends.ports
        for family, group in chosen.items()
    )
    return _srv_answer(rule, choice, endpoint_srv_records(offers, kubernetes.labels, rule.ttl, question.limit))


def rule_of(
    kubernetes: KubernetesZone,
    key: ObjectKey | None,
    question: ZoneQuestion,
    view: str = "",
    ranks: bool = False,
    imported: bool = False,
) -> Rule:
    """The rule for the name `view` of the headless Service or ServiceImport (`imported`) with this key. `key` None:
    nothing filters the answer, nor does it without keys of a ServiceImport.

    `ranks`: the answer may have every endpoint with a priority. Raises BadOption for a malformed Client Subnet from a
    trusted source.
    """
    topology, state, ttl = kubernetes.topology, kubernetes.state, kubernetes.settings.ttl
    if key is None or topology is None:
        return Rule(kubernetes, ttl)
    if imported:
        keys = state.cluster_set.keys.get(key, NO_KEYS)
        policy, most = keys.policy, keys.max_endpoints
        if policy is None and most is None:
            return Rule(kubernetes, ttl)
        ranks = False
    else:
        policy = policy_of_name(state, key, view)
        most = state.max_endpoints.get(key) if state.max_endpoints else None
    varies, ranking, bound = most is not None, None, None
    if isinstance(policy, Policy):
        varies = varies or (not is_same_for_all(policy) if imported else policy.keys[:1] != _ANY_FIRST)
        ttl = kubernetes.ttl_under_policy if policy.ttl is None else policy.ttl
        ranking = policy if ranks and topology.srv_priority and is_ranked(policy) else None
    location, claimed = located(kubernetes, question) if varies else (None, False)
    if most is not None and location is not None:
        client = location.node_name or str(ip_address(question.address))
        bound = _Bound(most, key, client, by_node=bool(location.node_name))
    return _new(Rule, (kubernetes, ttl, True, policy, location, claimed, ranking, bound))


def policy_of_name(state: ClusterState, key: ObjectKey, view: str) -> AnyPolicy:
    """The policy of the plain name of a headless Service (`view` ""), or of one of its views."""
    if view == ALL:
        return None
    policy = state.policies.own.get(key) or state.policies.get(key)  # mostly without a call: each query comes here
    if view:
        return _NEAR if policy is None else policy
    return None if policy is not None and policy.near_only else policy


def _load_facts(policy: Policy) -> Facts:
    """The labels whose values share the load under `max_load`."""
    return tuple(label_fact(key) for key in policy.labels if key != HOSTNAME_LABEL)


def _miss(policy: AnyPolicy, selection: Selection, location: Location | None) -> Ede | None:
    """The extended error where a policy leaves a client without endpoints."""
    if selection.reason not in MISSES:
        return None
    if isinstance(policy, InvalidPolicy):
        return Ede(EdeCode.OTHER, f"invalid topology keys: {policy.problem}")
    node_name = location.node_name if location is not None else ""
    if not node_name and selection.reason is not Reason.NO_MATCH:
        return _UNLOCATED
    tried = ", ".join(tried_key for tried_key, _ in selection.tried)
    client = f" for node {node_name}" if node_name else ""
    return Ede(EdeCode.OTHER, f"no endpoint matches topologyKeys {tried}{client}")


def selection_of(kubernetes: KubernetesZone, policy: AnyPolicy, pool: Pool, location: Location | None) -> Selection:
    """The endpoints of `pool` for a client at `location`, also while RBAC denies Nodes or Pods.

    `location` None: the policy is the same for all clients.
    """
    if location is None:
        if policy is None:
            return Selection(pool.everyone, _UNFILTERED)
        if isinstance(policy, Policy) and pool.cluster_set is None:
            return Selection(pool.everyone, _ANY, ANY_KEY)
    topology = kubernetes.topology
    unknown_client = topology.unknown_client if topology is not None else UnknownClient.STRICT
    on_invalid = topology.on_invalid if topology is not None else OnInvalid.IGNORE
    denied, domains = kubernetes.state.denied, kubernetes.domains
    if denied and location is not None and topology is not None and not denied.isdisjoint(topology.placing_kinds):
        labels_denied = location.node is None and not denied.isdisjoint(_LABELLED)
        return select_while_denied(pool, policy, location, labels_denied, unknown_client, on_invalid, domains)
    return select(pool, policy, location or _UNKNOWN, unknown_client, on_invalid, domains)


def located(kubernetes: KubernetesZone, question: ZoneQuestion) -> tuple[Location, bool]:
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


def _objection(rule: Rule, every: Iterable[Pool]) -> Answer | None:
    """SERVFAIL or REFUSED in place of records, None for neither: where watches are incomplete, so that locations of
    clients or endpoints are unknown, and for a client without a location with `unknown_client refuse`.

    `every`: the endpoints of all types. They make the location count, so that no client shares the answer of another
    one that is refused.
    """
    policy = rule.policy
    if not isinstance(policy, Policy) or policy.keys[:1] == _ANY_FIRST:
        return None
    if not rule.kubernetes.state.is_covered:
        return NOT_READY
    if not rule.kubernetes.refuses:
        return None
    filled = [pool for pool in every if pool.everyone.endpoints]
    if not filled or any(rule.selection(pool).reason is not Reason.UNKNOWN_CLIENT for pool in filled):
        return None
    selection = Selection(EMPTY_GROUP, Reason.UNKNOWN_CLIENT)
    return Answer(Rcode.REFUSED, selection=selection, location=rule.location, claimed=rule.claimed, ede=_UNLOCATED)
