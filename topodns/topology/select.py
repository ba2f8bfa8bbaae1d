"""Which endpoints a client should be told about.

Pure: works on model values only. The rule is chosen first, applied second; every fallback is in the choosing.
The law is docs/topology.md (KEP-536, kube-proxy's FilterTopologyEndpoint of 1.17-1.21).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, NamedTuple

from topodns.cluster.backends import EMPTY_GROUP, Group, Pool
from topodns.cluster.model import HOSTNAME_LABEL, ZONE_LABEL, Node
from topodns.cluster.policy import ANY_KEY, InvalidPolicy, KeySource, Policy


class UnknownClient(Enum):
    """What a client that nobody can locate is told, where the policy does not end in `*`."""

    STRICT = "strict"  # nothing: NODATA, as kube-proxy's empty label map
    ALL = "all"
    REFUSE = "refuse"  # the query is REFUSED


class OnInvalid(Enum):
    IGNORE = "ignore"  # unfiltered
    DENY = "deny"  # nothing: NODATA


class Reason(StrEnum):
    """Why a selection is what it is; the label `outcome` of topodns_selections_total."""

    UNFILTERED = "unfiltered"  # no policy
    MATCHED = "matched"  # `key` won
    ANY = "any"  # `*` won
    NO_MATCH = "no_match"
    NO_ENDPOINTS = "no_endpoints"  # the pool was empty (the other family's may not be): no key was looked at
    UNKNOWN_CLIENT = "unknown_client"  # and so nothing
    UNKNOWN_CLIENT_ALL = "unknown_client_all"  # `*` last, hints, or unknown_client all
    INVALID = "invalid"  # policy invalid, and ignored
    DENIED = "denied"  # policy invalid, and on_invalid deny
    HINTED = "hinted"  # hints were followed; they may have left everyone


@dataclass(frozen=True, slots=True)
class Location:
    """The node a client is on, and how we know. `node_name` "" is unknown; `node` is None where there is no object."""

    node_name: str = ""
    node: Node | None = None
    method: str = "unknown"  # identity, ecs, nodes, podcidr, slices, pods, own, unknown
    prefix_length: int = 0  # of the ECS that was used, for SCOPE PREFIX-LENGTH (RFC 7871 7.2.1)


class Selection(NamedTuple):
    """What `select` chose and why. `tried` has each key that was looked at, in order, with its number of matches."""

    group: Group
    reason: Reason
    key: str = ""  # the winning key; "" unless MATCHED or ANY
    tried: tuple[tuple[str, int], ...] = ()


_ANY, _MATCHED = Reason.ANY, Reason.MATCHED  # reading an Enum's member costs 0.1 us
_NO_LABELS: Final[Mapping[str, str]] = {}


def select(
    pool: Pool,
    policy: Policy | InvalidPolicy | None,
    location: Location,
    unknown_client: UnknownClient = UnknownClient.STRICT,
    on_invalid: OnInvalid = OnInvalid.IGNORE,
) -> Selection:
    """The endpoints of `pool` for a client at `location`. REFUSE selects like STRICT; refusing is the caller's part.

    The first key with at least one match wins and returns all its matches; keys are never mixed. A node without any
    label (or without a Node object) is an unknown client, except that kubernetes.io/hostname knows it by its name.
    """
    if isinstance(policy, InvalidPolicy):
        return _select_invalid(pool, on_invalid)
    if policy is None or (not policy.keys and policy.asks_nothing):
        return Selection(pool.everyone, Reason.UNFILTERED)
    if not location.node_name:
        return _select_unlocated(pool, policy, unknown_client)
    if not pool.everyone.endpoints:
        return Selection(EMPTY_GROUP, Reason.NO_ENDPOINTS)
    if not policy.keys:
        return _select_hinted(pool, location)
    return _select_by_keys(pool, policy, location, unknown_client)


def _select_invalid(pool: Pool, on_invalid: OnInvalid) -> Selection:
    if on_invalid is OnInvalid.DENY:
        return Selection(EMPTY_GROUP, Reason.DENIED)
    return Selection(pool.everyone, Reason.INVALID)


def _select_unlocated(pool: Pool, policy: Policy, unknown_client: UnknownClient) -> Selection:
    """Everyone where nothing was demanded (hints only prefer), or where the operator says so; else nobody."""
    if policy.source is KeySource.HINTS or policy.keys[-1] == ANY_KEY or unknown_client is UnknownClient.ALL:
        return Selection(pool.everyone, Reason.UNKNOWN_CLIENT_ALL)
    return Selection(EMPTY_GROUP, Reason.UNKNOWN_CLIENT)


def _select_hinted(pool: Pool, location: Location) -> Selection:
    topology_zone = location.node.labels.get(ZONE_LABEL) if location.node is not None else None
    return Selection(pool.hinted(location.node_name, topology_zone), Reason.HINTED)


def _select_by_keys(pool: Pool, policy: Policy, location: Location, unknown_client: UnknownClient) -> Selection:
    labels = location.node.labels if location.node is not None else _NO_LABELS
    keys = policy.keys if policy.keys_if_unlabelled is None else _keys_for(policy, labels)
    tried: tuple[tuple[str, int], ...] = ()
    for key in keys:
        if key == ANY_KEY:
            return Selection(pool.everyone, _ANY, key, (*tried, (key, len(pool.everyone.endpoints))))
        value = labels.get(key)
        if key == HOSTNAME_LABEL:
            group = pool.same_host(location.node_name, location.node_name if value is None else value)
        else:
            group = EMPTY_GROUP if value is None else pool.matching(key, value)
        tried = (*tried, (key, len(group.endpoints)))
        if group.endpoints:
            return Selection(group, _MATCHED, key, tried)
    if labels or keys == (HOSTNAME_LABEL,):
        return Selection(EMPTY_GROUP, Reason.NO_MATCH, tried=tried)
    return _select_unlocated(pool, policy, unknown_client)._replace(tried=tried)


def _keys_for(policy: Policy, labels: Mapping[str, str]) -> tuple[str, ...]:
    """OpenYurt's node topology stands in for a pool that the client's node has not; an empty name is no pool there."""
    if policy.keys_if_unlabelled is None or labels.get(policy.keys[0]):
        return policy.keys
    return policy.keys_if_unlabelled
