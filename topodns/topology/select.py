"""Endpoint selection: the endpoints of a Service that the answer to one client contains.

Pure: works on model values only. `select` handles what needs no key, `_select_by_keys` tries the keys.
Specification: docs/reference/topology.md (KEP-536, kube-proxy's FilterTopologyEndpoint of 1.17-1.21).

`rank_all` gives every endpoint a priority instead, for SRV answers with the option `srv_priority`, whose clients do
their own failover (RFC 2782).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, NamedTuple

from topodns.cluster.endpoints import EMPTY_GROUP, Group, Pool
from topodns.cluster.model import (
    ANY_KEY,
    CLUSTER_KEY,
    HOSTNAME_LABEL,
    OTHER,
    ZONE_LABEL,
    InvalidPolicy,
    KeySource,
    MaxLoad,
    Node,
    Policy,
    label_name,
)
from topodns.topology.guards import Domains


class UnknownClient(Enum):
    """The option `unknown_client`: the answer to a client without a location, or whose Node has no labels.

    Without effect on policies that end in `*` or follow the hints: such a client gets all endpoints.
    """

    STRICT = "strict"  # no endpoint: NODATA, as kube-proxy's empty label map
    ALL = "all"  # all endpoints
    REFUSE = "refuse"  # RCODE REFUSED


class OnInvalid(Enum):
    IGNORE = "ignore"  # all endpoints
    DENY = "deny"  # no endpoint: NODATA


class Reason(StrEnum):
    """Outcome of a selection; the label `outcome` of topodns_selections_total."""

    UNFILTERED = "unfiltered"  # no policy: all endpoints
    MATCHED = "matched"  # a label key won: its matches
    LAST_RESORT = "last_resort"  # no key passes the guards, and there is no `*`: the first with a match won
    ANY = "any"  # `*` won: all endpoints
    NO_MATCH = "no_match"  # no key matched: no endpoint
    NO_ENDPOINTS = "no_endpoints"  # the pool of this family is empty (the other's may not be): no key was tried
    UNKNOWN_CLIENT = "unknown_client"  # client not located, or its Node has no labels: no endpoint
    UNKNOWN_CLIENT_ALL = "unknown_client_all"  # client not located, and `*` last or hints; or unknown_client all
    INVALID = "invalid"  # policy invalid, on_invalid ignore: all endpoints
    DENIED = "denied"  # policy invalid, on_invalid deny: no endpoint
    NOT_PERMITTED = "not_permitted"  # RBAC denies the objects that give the client's Node or its labels: all endpoints
    HINTED = "hinted"  # by the hints of the slices, which may select all endpoints
    RANKED = "ranked"  # srv_priority: all endpoints, each with the index of the first key it satisfies


MISSES: Final = frozenset({Reason.NO_MATCH, Reason.UNKNOWN_CLIENT, Reason.DENIED})
"""Outcomes without an endpoint, though there are ready ones."""

UNLOCATED_REASONS: Final = frozenset({Reason.UNKNOWN_CLIENT, Reason.UNKNOWN_CLIENT_ALL})


@dataclass(frozen=True, slots=True)
class Location:
    """The Node of a client, and the method that found it.

    `node_name` "": unknown. `node` None: the state has no Node object of that name.
    """

    node_name: str = ""
    node: Node | None = None
    method: str = "unknown"  # identity, ecs, own, given, unknown, or a `client_locator.Method`
    prefix_length: int = 0  # SOURCE PREFIX-LENGTH of the ECS used, for SCOPE PREFIX-LENGTH (RFC 7871 7.2.1)


class Selection(NamedTuple):
    """The selected endpoints and the reason. `tried`: each key compared, in order, with its number of matches."""

    group: Group
    reason: Reason
    key: str = ""  # the winning key; "" unless MATCHED, LAST_RESORT or ANY
    tried: tuple[tuple[str, int], ...] = ()


_ANY, _MATCHED = Reason.ANY, Reason.MATCHED  # read once: access to a member of an Enum costs 0.1 us
NO_LABELS: Final[Mapping[str, str]] = {}
_ANY_ALONE: Final = frozenset((ANY_KEY,))
_SAME_FOR_ALL: Final = _ANY_ALONE | {CLUSTER_KEY}  # keys of a ServiceImport


def select(
    pool: Pool,
    policy: Policy | InvalidPolicy | None,
    location: Location,
    unknown_client: UnknownClient = UnknownClient.STRICT,
    on_invalid: OnInvalid = OnInvalid.IGNORE,
    domains: Domains | None = None,
) -> Selection:
    """Select the endpoints of `pool` for a client at `location`.

    Keys are tried in order. The first key with a match that passes the policy's guards wins and gives all its matches,
    and `*` always wins; without either the first key with any match does. Matches of several keys are never merged.
    `!KEY` matches endpoints in another domain of KEY. A client whose Node has no labels (or no Node object) counts as
    unknown, except that kubernetes.io/hostname has the Node's name as its value.
    UnknownClient.REFUSE selects as STRICT does; the caller sends REFUSED. `domains`: the Nodes that share the load of a
    policy with `max_load`; without it that guard has no effect.
    For endpoints of a ServiceImport (`cluster.cluster_set`) a client has a value of `cluster` without a Node, too.
    """
    if isinstance(policy, InvalidPolicy):
        return _select_invalid(pool, on_invalid)
    if policy is None or (not policy.keys and policy.is_empty):
        return Selection(pool.everyone, Reason.UNFILTERED)
    if not location.node_name and pool.cluster_set is None:
        return _select_unlocated(pool, policy, unknown_client)
    if not pool.everyone.endpoints:
        return Selection(EMPTY_GROUP, Reason.NO_ENDPOINTS)
    if not policy.keys:
        return Selection(hinted(pool, location.node_name, location.node), Reason.HINTED)
    return _select_by_keys(pool, policy, location, unknown_client, domains=domains)


def select_while_denied(
    pool: Pool,
    policy: Policy | InvalidPolicy | None,
    location: Location,
    labels_denied: bool,
    unknown_client: UnknownClient = UnknownClient.STRICT,
    on_invalid: OnInvalid = OnInvalid.IGNORE,
    domains: Domains | None = None,
) -> Selection:
    """The selection while RBAC denies Nodes or Pods that the policy needs.

    `labels_denied`: the labels of this client's Node are among what is denied. The missing permission is the operator's
    mistake and must not cost clients their answers. So all endpoints go to two kinds of clients: to one that has no
    location without the denied objects, and to one whose selection comes to a label that is denied. A key other than
    kubernetes.io/hostname needs one if no key before it wins; the hostname is the Node's name. Hints need one if they
    go by the zone of the client's Node. All other clients get what `select` gives them with the permission.
    """
    if not isinstance(policy, Policy) or policy.is_empty:
        return select(pool, policy, location, unknown_client, on_invalid)
    if not location.node_name and (pool.cluster_set is None or not policy.keys):
        return Selection(pool.everyone, Reason.NOT_PERMITTED)
    labels_denied = labels_denied or not location.node_name
    if not labels_denied or not pool.everyone.endpoints:
        return select(pool, policy, location, unknown_client, on_invalid, domains)
    if policy.keys:
        return _select_by_keys(pool, policy, location, unknown_client, labels_denied=True)
    if goes_by_zone(pool, location.node_name):
        return Selection(pool.everyone, Reason.NOT_PERMITTED)
    return select(pool, policy, location, unknown_client, on_invalid)


def satisfying(pool: Pool, key: str, node_name: str, labels: Mapping[str, str]) -> Group:
    """The endpoints that satisfy a key other than `*` for a client on this Node; `labels` are the Node's."""
    value = labels.get(key)
    if key == HOSTNAME_LABEL:
        return pool.same_host(node_name, node_name if value is None else value) if node_name else EMPTY_GROUP
    if value is not None:
        return pool.matching(key, value)
    # No label begins with OTHER, so a key that does has no value above, and other keys pay nothing for it.
    return _elsewhere(pool, label_name(key), node_name, labels) if key[0] == OTHER else EMPTY_GROUP


def _elsewhere(pool: Pool, label: str, node_name: str, labels: Mapping[str, str]) -> Group:
    """The endpoints on Nodes that have the label with another value than the client's Node, which must have it too.

    Every Node has kubernetes.io/hostname: without the label its value is the Node's name.
    """
    if label not in labels and (label != HOSTNAME_LABEL or not node_name):
        return EMPTY_GROUP
    return pool.outside(label, satisfying(pool, label, node_name, labels))


def _select_invalid(pool: Pool, on_invalid: OnInvalid) -> Selection:
    if on_invalid is OnInvalid.DENY:
        return Selection(EMPTY_GROUP, Reason.DENIED)
    return Selection(pool.everyone, Reason.INVALID)


def _select_unlocated(pool: Pool, policy: Policy, unknown_client: UnknownClient) -> Selection:
    """All endpoints if the policy is a preference only (hints, `*` last) or `unknown_client` is all; else none."""
    if policy.source is KeySource.HINTS or policy.keys[-1] == ANY_KEY or unknown_client is UnknownClient.ALL:
        return Selection(pool.everyone, Reason.UNKNOWN_CLIENT_ALL)
    return Selection(EMPTY_GROUP, Reason.UNKNOWN_CLIENT)


def _select_by_keys(
    pool: Pool,
    policy: Policy,
    location: Location,
    unknown_client: UnknownClient,
    labels_denied: bool = False,
    domains: Domains | None = None,
) -> Selection:
    """The selection by the keys in order; all endpoints at the first one that needs a label that is denied."""
    of_node = labels = location.node.labels if location.node is not None else NO_LABELS
    if pool.cluster_set is not None:
        labels = pool.cluster_set.labels_of_client(of_node)
    keys = policy.keys if labels_denied or policy.keys_if_unlabelled is None else _keys_for(policy, labels)
    tried: tuple[tuple[str, int], ...] = ()
    last_resort: Selection | None = None  # the first key with a match
    for key in keys:
        if key == ANY_KEY:
            if not location.node_name and not _decides_unlabelled(pool, keys, location):
                return _select_unlocated(pool, policy, unknown_client)._replace(tried=tried)
            return Selection(pool.everyone, _ANY, key, (*tried, (key, len(pool.everyone.endpoints))))
        if labels_denied and not _decides_unlabelled(pool, (key,), location):
            return Selection(pool.everyone, Reason.NOT_PERMITTED, tried=tried)
        group = satisfying(pool, key, location.node_name, labels)
        tried = (*tried, (key, len(group.endpoints)))
        if group.endpoints:
            enough = len(group.endpoints) >= policy.min_endpoints
            if enough and (policy.max_load is None or _within_load(pool, key, location, policy.max_load, domains)):
                return Selection(group, _MATCHED, key, tried)
            last_resort = last_resort or Selection(group, Reason.LAST_RESORT, key)
    if last_resort is not None:
        return last_resort._replace(tried=tried)
    if of_node or _decides_unlabelled(pool, keys, location):
        return Selection(EMPTY_GROUP, Reason.NO_MATCH, tried=tried)
    return _select_unlocated(pool, policy, unknown_client)._replace(tried=tried)


def _within_load(pool: Pool, key: str, location: Location, max_load: MaxLoad, domains: Domains | None) -> bool:
    """Whether the client's Node is one of those that its value of this key may serve."""
    return domains is None or location.node is None or domains.admits(pool, key, location.node, max_load)


def _decides_unlabelled(pool: Pool, keys: tuple[str, ...], location: Location) -> bool:
    """Whether the labels of the client's Node count for none of these keys: for its hostname the name is enough, and
    `cluster` of a ServiceImport is the same for all clients.
    """
    known = _SAME_FOR_ALL if pool.cluster_set is not None else _ANY_ALONE
    return (known | {HOSTNAME_LABEL} if location.node_name else known).issuperset(map(label_name, keys))


def is_same_for_all(policy: Policy) -> bool:
    """Whether the keys of a ServiceImport select the same endpoints for all clients."""
    return _SAME_FOR_ALL.issuperset(map(label_name, policy.keys))


def _keys_for(policy: Policy, labels: Mapping[str, str]) -> tuple[str, ...]:
    """The keys for a client's Node with these labels.

    OpenYurt's keys fall back to the hostname if the Node is in no node pool; an empty pool name counts as none.
    """
    return policy.keys if labels.get(policy.keys[0]) else policy.keys_if_unlabelled or ()


def hinted(pool: Pool, node_name: str, node: Node | None) -> Group:
    """The endpoints of `pool` hinted for clients on a Node, or `pool.everyone`, as kube-proxy chooses them.

    `node`: the Node's object; None if there is none, and then only hints for the Node's name apply.

    The rule is that of CategorizeEndpoints in Kubernetes (KEP-2433 for zones, KEP-3015 for Nodes), for the ready
    endpoints of one family:

    1. Hints of a kind count only if every endpoint has one: a hint that is missing means that the EndpointSlice
       controller is still at work, or that zones have too few endpoints.
    2. If hints for Nodes count, and some endpoint is hinted for the client's Node, the client gets the endpoints hinted
       for it.
    3. Else, if hints for zones count, and some endpoint is hinted for the zone of the client's Node, it gets those.
    4. Else it gets all endpoints: hints are a preference, and never leave a client without an answer.

    Endpoints that are not ready, which are in a pool only with `terminating_fallback`, keep old hints. They have no
    effect.
    """
    if not _ready(pool):
        return pool.everyone
    for_node = pool.hinted_for_node(node_name)
    if for_node is not None:
        return for_node
    topology_zone = node.labels.get(ZONE_LABEL) if node is not None else None
    for_zone = pool.hinted_for_zone(topology_zone) if topology_zone else None
    return pool.everyone if for_zone is None else for_zone


def goes_by_zone(pool: Pool, node_name: str) -> bool:
    """Whether `hinted` goes by the zone of this Node: by rule 3, or by rule 4 since none is hinted for its zone."""
    return _ready(pool) and pool.has_zone_hints and pool.hinted_for_node(node_name) is None


def _ready(pool: Pool) -> bool:
    """Whether the endpoints are ready; either all of them are, or none is."""
    endpoints = pool.everyone.endpoints
    return not endpoints or endpoints[0].ready


_BY_KEY: Final = frozenset({Reason.MATCHED, Reason.ANY})


def is_ranked(policy: Policy) -> bool:
    """Whether the policy is a preference between keys: it ends in `*`, with other keys before.

    Others are not ranked: a list without `*` withholds the endpoints that satisfy no key, and `*` alone has no order,
    nor have hints.
    """
    return len(policy.keys) > 1 and policy.keys[-1] == ANY_KEY


def ranked(pool: Pool, policy: Policy, location: Location, priority: int) -> Group:
    """The endpoints of `pool` that satisfy the key at index `priority` of a ranked policy, for a client at `location`.

    The priority of an endpoint is the lowest with which it is in this group: those of later keys include it again. For
    a client without a location every endpoint satisfies only `*`, the last key, and so has its index.
    """
    key = policy.keys[priority]
    if key == ANY_KEY:
        return pool.everyone
    if not location.node_name:
        return EMPTY_GROUP
    return satisfying(pool, key, location.node_name, location.node.labels if location.node is not None else NO_LABELS)


def rank_all(selection: Selection, pool: Pool, policy: Policy, location: Location) -> Selection:
    """Every endpoint of `pool`, in place of `selection`, which is that of `select` for the same client.

    `tried` has every key with its matches, also those of earlier keys. A selection for another reason than a key is
    returned as it is: it has every endpoint already.
    """
    if selection.reason not in _BY_KEY:
        return selection
    groups = (ranked(pool, policy, location, priority) for priority in range(len(policy.keys)))
    tried = tuple((key, len(group.endpoints)) for key, group in zip(policy.keys, groups, strict=True))
    return Selection(pool.everyone, Reason.RANKED, tried=tried)
