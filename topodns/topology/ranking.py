"""Ranking: every endpoint of a Service, with a priority by the first topology key that it satisfies for a client.

For SRV answers with the option `srv_priority`, whose clients do their own failover (RFC 2782): where `select` gives the
matches of the first key only, a ranking gives all endpoints. Pure: works on model values only. Specification:
docs/reference/topology.md.
"""

from typing import Final

from topodns.cluster.endpoints import EMPTY_GROUP, Group, Pool
from topodns.cluster.model import ANY_KEY, Policy
from topodns.topology.select import NO_LABELS, Location, Reason, Selection, satisfying

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
