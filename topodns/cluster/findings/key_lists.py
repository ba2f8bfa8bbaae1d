"""Findings about the key list of a Service: invalid, without effect, or harmful; with the label that may be meant."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from topodns.cluster.findings.finding import MAX_NAMED, Finding, Severity, first_names
from topodns.cluster.model import (
    ANY_KEY,
    CLUSTER_KEY,
    HOSTNAME_LABEL,
    OTHER,
    REGION_LABEL,
    SWITCHED_OFF,
    ZONE_LABEL,
    InvalidPolicy,
    KeySource,
    Node,
    ObjectKey,
    Policy,
    label_name,
)
from topodns.cluster.node_labels import NodeLabels

_GOVERNING: Final = (
    "topology keys on the governing Service of a StatefulSet hide its members from each other when they look up the "
    "Service's name; give clients a headless Service of their own"
)


_BOUNDED: Final = (
    "max-endpoints on the governing Service of a StatefulSet hides members from each other when they look up the "
    "Service's name; give clients a headless Service of their own"
)


def key_findings(
    key: ObjectKey,
    policy: Policy | InvalidPolicy | None,
    governing: bool,
    bounded: bool,
    ignored: bool,
    labels: NodeLabels,
) -> Iterator[Finding]:
    """The findings about one Service's key list and `max-endpoints`, with the labels of the Nodes.

    `governing`: `Policies.governs`. `bounded`: whether it has `max-endpoints`. `ignored` is on_invalid: True
    (ignore) leaves a Service with an invalid policy unfiltered, False (deny) empties it. None about labels that only
    some Nodes have, which is often meant: `partial_findings`.
    """
    if governing and bounded:
        yield Finding(key, "governing", _BOUNDED)
    if isinstance(policy, InvalidPolicy):
        effect = "the Service stays unfiltered" if ignored else "no client gets an endpoint (on_invalid deny)"
        text = f"{policy.source.written}: {policy.problem}; {effect}"
        yield Finding(key, "invalid", text, Severity.ERROR)
        return
    if policy is None:
        return
    for warning in policy.warnings:
        yield Finding(key, "mended", warning)
    if governing and not policy.is_empty and policy.keys != (ANY_KEY,) and not policy.near_only:
        yield Finding(key, "governing", _GOVERNING)
    if labels.nodes:
        yield from _label_findings(key, policy, labels)


def _label_findings(key: ObjectKey, policy: Policy, labels: NodeLabels) -> Iterator[Finding]:
    for each in absent_keys(policy.keys, labels):
        yield Finding(key, "ineffective", no_node_has(label_name(each), policy, labels.names), keys=(each,))
    for each, before in shadowed_keys(policy, labels):
        text = never_decides(each, before, nearest_first(policy.keys, _contains), _where(each, before))
        yield Finding(key, "ineffective", text, keys=(each,))


def no_node_has(label: str, policy: Policy, names: tuple[str, ...]) -> str:
    """The sentence about a key whose label no Node has, with the one of `names` that may be meant."""
    return f"no Node has the label {label}, which therefore never matches{_meant(label, policy, names)}"


def never_decides(key: str, before: str, order: Sequence[str], where: str = "") -> str:
    """The sentence about a key that is shadowed by one before it: everywhere, or, as of `_where`, on some Nodes.

    `order`: of all keys, so that each may decide (`nearest_first`).
    """
    there = " there" if where else ""
    how = "in this order" if any(each.startswith(OTHER) for each in order) else "the nearest first"
    right = f"{how}: {','.join(order)}"
    return f"the key {key} never decides{where}, since {before} before it always matches{there}; {right}"


def nearest_first(keys: Sequence[str], contains: Callable[[str, str], bool]) -> tuple[str, ...]:
    """These keys in their order, but each before all that contain it: `contains(wider, key)`."""
    order: list[str] = []
    for key in keys:
        order.insert(next((at for at, other in enumerate(order) if contains(other, key)), len(order)), key)
    return tuple(order)


def _where(key: str, before: str) -> str:
    """On which Nodes a key is shadowed by one before it, as an adverbial; "" for all.

    The label of the earlier key may be missing on some if it is WELL_KNOWN. It is named also while all have it, since a
    new Node gets it a moment after its object, and the sentence would change. Of the hostname the client's own Node
    counts alone, as only endpoints on it match.
    """
    label = label_name(before)
    if label not in WELL_KNOWN:
        return ""
    whose = "clients" if key == HOSTNAME_LABEL else "clients and endpoints"
    return f" for {whose} on Nodes with the label {label}"


def _meant(label: str, policy: Policy, names: tuple[str, ...]) -> str:
    """The end of the sentence about a label that no Node has: what may be meant by it."""
    if label.lower() == SWITCHED_OFF and policy.source is not KeySource.FIELD:
        return f"; did you mean {SWITCHED_OFF!r}?" + (" It counts alone" if len(policy.keys) > 1 else "")
    nearest = nearest_label(label, names)
    return f"; did you mean {nearest}?" if nearest else ""


def partial_findings(
    key: ObjectKey, partial: Iterable[str], labels: NodeLabels, nodes: Collection[Node]
) -> Iterator[Finding]:
    """The findings about keys of one Service that only some of these Nodes have as a label: `partial_keys`, or those of
    them `in_another_case`.
    """
    for each in partial:
        if without := nodes_without(each, nodes):
            named = tuple(without[:MAX_NAMED])
            text = lacking(each, without, labels)
            yield Finding(key, "partial", text, Severity.INFO, len(without), named, keys=(each,))


def lacking(label: str, without: Sequence[str], labels: NodeLabels) -> str:
    """The sentence about the Nodes `without` this label."""
    names = first_names(without)
    other = labels.in_another_case(label)
    alike = f" (some have {other})" if other else ""
    return f"{len(without)} of {labels.nodes} Nodes lack the label {label}{alike}, so it matches nothing there: {names}"


_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"

_RANKS: Final[Mapping[str, int]] = {
    REGION_LABEL: 1,
    _BETA_REGION: 1,
    ZONE_LABEL: 2,
    _BETA_ZONE: 2,
    HOSTNAME_LABEL: 3,
}
"""Labels whose domains lie within each other: of each value of a later rank all Nodes have one value of an earlier."""

WELL_KNOWN: Final = _RANKS.keys() - {HOSTNAME_LABEL}  # that the cloud's controller gives each Node, or none

_OTHER_SPELLING: Final = {
    ZONE_LABEL: _BETA_ZONE,
    _BETA_ZONE: ZONE_LABEL,
    REGION_LABEL: _BETA_REGION,
    _BETA_REGION: REGION_LABEL,
}
"""Labels of one meaning: those of Kubernetes before 1.17, and since."""

MAX_NEAREST: Final = 256  # wrong keys whose nearest label is looked for while the labels of Nodes stay
_LIKE: Final = 0.75  # difflib's ratio of two names from which on one may be meant by the other
_COMPARED: Final = 100  # characters of a label: difflib is quadratic


def absent_keys(keys: Sequence[str], labels: NodeLabels) -> tuple[str, ...]:
    """The keys whose label no Node has."""
    return tuple(key for key in keys if key != ANY_KEY and not labels.with_label(label_name(key)))


def partial_keys(policy: Policy, labels: NodeLabels) -> tuple[str, ...]:
    """The labels of keys that some Nodes have, and others do not; none where the policy has other keys for those."""
    if policy.keys_if_unlabelled is not None:
        return ()
    return tuple(label for label in policy.labels if 0 < labels.with_label(label) < labels.nodes)


def in_another_case(policy: Policy, labels: NodeLabels) -> tuple[str, ...]:
    """Those of `partial_keys` that some Nodes have in another case, most likely by mistake."""
    return tuple(each for each in partial_keys(policy, labels) if labels.in_another_case(each))


def nodes_without(label: str, nodes: Iterable[Node]) -> list[str]:
    """The names of the ready Nodes without this label, in order: a new Node gets its zone a moment after its object."""
    return sorted(node.name for node in nodes if node.ready and label not in node.labels)


def shadowed_keys(policy: Policy, labels: NodeLabels) -> Iterator[tuple[str, str]]:
    """(key, an earlier key) where the key never decides: whatever it matches, the earlier one matches too.

    That is so where the domains of the later key lie within those of the earlier one, and where `max-load` does not
    send Nodes from the earlier one to the later. All Nodes have the label of the earlier one. A WELL_KNOWN label some
    Nodes may lack, by mistake as a rule: there the later key decides, as a client's Node without a label skips the key.
    """
    keys = policy.keys
    certain = [key for key in keys if policy.max_load is None or key.startswith(OTHER)]
    for at, key in enumerate(keys):
        earlier = (each for each in keys[:at] if each in certain and _contains(each, key) and _on_most(each, labels))
        if (before := next(earlier, None)) is not None:
            yield key, before


def _on_all(key: str, labels: NodeLabels) -> bool:
    return labels.with_label(label_name(key)) == labels.nodes


def _on_most(key: str, labels: NodeLabels) -> bool:
    """Whether all Nodes have the label of this key, or are meant to: some have one that is WELL_KNOWN."""
    label = label_name(key)
    return _on_all(key, labels) or (label in WELL_KNOWN and labels.with_label(label) > 0)


def _contains(wider: str, key: str) -> bool:
    """Whether the matches of a key are among those of another one, for a client whose Node has both labels."""
    if key.startswith(OTHER) or wider.startswith(OTHER):  # what is in another zone is on another Node, too
        return key.startswith(OTHER) and wider.startswith(OTHER) and _contains(label_name(key), label_name(wider))
    if key == HOSTNAME_LABEL:  # a Node alone has one value of any label
        return wider not in (ANY_KEY, HOSTNAME_LABEL)
    return 0 < _RANKS.get(wider, 0) < _RANKS.get(key, 0)


def import_key_problems(
    policy: Policy, labels: NodeLabels, regions_agree: bool, own_zones: bool
) -> Iterator[tuple[str, str]]:
    """(key, sentence) about each key of a ServiceImport that no Node has as a label, or that never decides.

    `regions_agree`: `ClusterSet.regions_agree`. `own_zones`: whether endpoints of this cluster have the zones of their
    Nodes. Not about the key `cluster`: it is no label, and may wait for the cluster's id.
    """
    keys = [key for key in policy.keys if label_name(key) != CLUSTER_KEY]
    for key in absent_keys(keys, labels):
        yield key, no_node_has(label_name(key), policy, (*labels.names, CLUSTER_KEY))

    def contains(wider: str, key: str) -> bool:
        return _contains_imported(wider, key, regions_agree, own_zones)

    for at, key in enumerate(policy.keys):
        for before in policy.keys[:at]:
            on_nodes = _on_most if key == HOSTNAME_LABEL else _on_all  # the zone of an import may be of no Node
            if contains(before, key) and (before == CLUSTER_KEY or on_nodes(before, labels)):
                where = _where(key, before) if key == HOSTNAME_LABEL else ""
                yield key, never_decides(key, before, nearest_first(policy.keys, contains), where)
                break


def _contains_imported(wider: str, key: str, regions_agree: bool, own_zones: bool) -> bool:
    """As `_contains`, of endpoints of a ServiceImport: only those of this cluster have the labels of Nodes."""
    if wider == CLUSTER_KEY:
        return label_name(key) not in (CLUSTER_KEY, ZONE_LABEL, REGION_LABEL, ANY_KEY)
    if label_name(wider) == CLUSTER_KEY or label_name(key) == CLUSTER_KEY:
        return False
    if (wider, key) in _IMPORTED_DOMAINS:
        return regions_agree
    if key != HOSTNAME_LABEL or wider.startswith(OTHER):
        return False
    if wider in (ZONE_LABEL, REGION_LABEL):
        return own_zones and (regions_agree or wider == ZONE_LABEL)
    return _contains(wider, key)


_IMPORTED_DOMAINS: Final = frozenset(((REGION_LABEL, ZONE_LABEL), (f"{OTHER}{ZONE_LABEL}", f"{OTHER}{REGION_LABEL}")))
"""(wider, key): the zone of a slice is in one region, that of this cluster's Nodes of the zone."""


def nearest_label(key: str, names: Sequence[str]) -> str:
    """The label most like this key among `names`, a tuple; "" for none, or after MAX_NEAREST other keys.

    Its other well-known spelling, if there is one, is it.
    The part behind the domain counts first: by `zone` and `failure-domain.beta.kubernetes.io/zone` the same is meant.
    """
    other = _OTHER_SPELLING.get(key, "")
    if other and other in names:
        return other
    found = _found(names)
    if key not in found and len(found) < MAX_NEAREST:
        found[key] = _nearest(key, names)
    return found.get(key, "")


@lru_cache(4)
def _found(names: Sequence[str]) -> dict[str, str]:
    """The nearest labels found so far, by key: tenants may have 100,000 wrong keys."""
    return {}


def _nearest(key: str, names: Sequence[str]) -> str:
    from difflib import SequenceMatcher, get_close_matches  # here: only mistakes need it

    by_word: dict[str, list[str]] = {}
    for name in names:
        by_word.setdefault(_word(name), []).append(name)
    words = get_close_matches(_word(key), by_word, n=1, cutoff=_LIKE)
    like = by_word[words[0]] if words else []
    return max(like, key=lambda name: SequenceMatcher(None, key[:_COMPARED], name[:_COMPARED]).ratio(), default="")


def _word(label: str) -> str:
    return label.rpartition("/")[2].lower()
