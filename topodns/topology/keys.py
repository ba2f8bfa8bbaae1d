"""The topology policy of a Service: keys from the first source that has a value, validated as Kubernetes 1.17 did.

Semantics: docs/reference/topology.md; KEP-536, ValidateService of 1.17-1.21. Pure: a Service in, a Policy or
InvalidPolicy out, with notices about its annotations.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from topodns.cluster.annotations import (
    APPLY_TO,
    DOMAIN,
    MAX_ENDPOINTS,
    MAX_LOAD,
    MIN_ENDPOINTS,
    SUPEREDGE,
    TOPOLOGY_KEYS,
    TTL,
    BadAnnotation,
    expected_text,
    problem_of_name,
)
from topodns.cluster.api_names import is_label_key
from topodns.cluster.label_selector import Selector
from topodns.cluster.model import (
    ANY_KEY,
    HOSTNAME_LABEL,
    MAX_KEYS_TEXT,
    OTHER,
    SWITCHED_OFF,
    ZONE_LABEL,
    InvalidPolicy,
    KeyReader,
    KeySource,
    Namespace,
    Notice,
    Policy,
    Service,
    ServiceKeys,
    TopologyInputs,
    label_name,
)
from topodns.topology.guards import Guards, guards_of, idle_guards

MAX_KEYS: Final = 16  # MaxServiceTopologyKeys of 1.17
NODE_POOL_LABEL: Final = "apps.openyurt.io/nodepool"
MIN_TTL: Final = 1
MAX_TTL: Final = 300

_TOO_LONG: Final = f"expected at most {MAX_KEYS_TEXT} characters"
_SHOWN_CHARACTERS: Final = 80  # of an annotation quoted in a message: an annotation may have 256 KiB
_WELL_KNOWN: Final = (HOSTNAME_LABEL, ZONE_LABEL, "topology.kubernetes.io/region")
_ANY_LABELS: Final = Selector()
_WITH_OTHERS: Final = frozenset({KeySource.ANNOTATION, KeySource.NAMESPACE, KeySource.DEFAULT})
_UNGUARDED: Final = Guards()
_MAX_PARSED: Final = 64  # lists of Namespaces: each is read again for each of the Namespace's Services
_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class DefaultKeys:
    """A line `default` of the Corefile: keys for headless Services that have none, nor their Namespace.

    `namespaces`: () for all. `labels`: of the Service. `place`: FILE:LINE, which may change without another effect.
    """

    policy: Policy
    namespaces: tuple[str, ...] = ()
    labels: Selector = _ANY_LABELS
    place: str = field(default="", compare=False)

    def holds_for(self, service: Service) -> bool:
        return (not self.namespaces or service.namespace in self.namespaces) and self.labels.matches(service.labels)

    def covers(self, other: "DefaultKeys") -> bool:
        """Whether this one certainly holds for all Services for which the other one does."""
        if not set(self.labels.requirements) <= set(other.labels.requirements):
            return False
        return not self.namespaces or (bool(other.namespaces) and set(other.namespaces) <= set(self.namespaces))


def key_reader(sources: Sequence[KeySource], defaults: Sequence[DefaultKeys] = ()) -> KeyReader:
    """The rules by which a ClusterState reads topology keys: from these sources in order, then of the Service's
    Namespace, then the first default that holds for the Service.
    """

    def read(service: Service) -> ServiceKeys:
        return _read_import(service, sources) if service.imported else _read(service, sources)

    def inherited(service: Service, namespace: Namespace | None) -> Policy | None:
        policy = _of_namespace(namespace, sources) if namespace is not None else None
        if not isinstance(policy, Policy):  # an invalid list of the Namespace does not count
            policy = next((each.policy for each in defaults if each.holds_for(service)), None)
        elif policy.warnings:
            policy = replace(policy, warnings=())
        return _completed(policy, service, guards_of(service))

    def problem_of(namespace: Namespace) -> str:
        policy = _of_namespace(namespace, sources)
        if isinstance(policy, InvalidPolicy):
            return f"{policy.problem}; it has no effect"
        return "; ".join(policy.warnings) if policy is not None else ""

    return KeyReader(read, inherited, problem_of, bool(defaults))


def _of_namespace(namespace: Namespace, sources: Sequence[KeySource]) -> Policy | InvalidPolicy | None:
    if KeySource.ANNOTATION not in sources:
        return None
    return _namespace_keys(namespace.topology_keys)


@lru_cache(_MAX_PARSED)
def _namespace_keys(text: str | None) -> Policy | InvalidPolicy | None:
    return parse_list(text, KeySource.NAMESPACE)


def _read(service: Service, sources: Sequence[KeySource]) -> ServiceKeys:
    guards, first = guards_of(service), _of_first_source(service, sources)
    policy = _decided(first, service, guards)
    notices = [bad_annotation(each) for each in service.topology.bad]
    notices += (Notice("annotation", "error", text) for text in guards.problems)
    without_effect: tuple[Notice, ...] = ()
    if notice := misplaced(service, sources):
        notices.append(Notice("misplaced", "warning", notice))
    else:
        if notice := overridden(service, sources):
            notices.append(Notice("overridden", "info", notice))
        if policy is None:
            without_effect = tuple(_without_effect(service.topology))
    without_own = service.headless and not service.imported and first is None
    if not without_own:
        notices += without_effect
    notices += (Notice("annotation", "warning", text) for text in _unused_annotations(service, sources, policy))
    most = guards.max_endpoints if service.headless else None
    return ServiceKeys(policy, tuple(notices), most, without_own, without_effect if without_own else ())


def _read_import(service: Service, sources: Sequence[KeySource]) -> ServiceKeys:
    """The keys of a ServiceImport: of topodns' own annotation alone, and without guards that count Nodes or views."""
    inputs = service.topology
    alone = replace(service, topology=replace(inputs, max_load=None, apply_to=None))
    keys = _read(alone, tuple(each for each in sources if each is KeySource.ANNOTATION))
    unread = ((MAX_LOAD, inputs.max_load), (APPLY_TO, inputs.apply_to))
    notices = [
        Notice("annotation", "warning", f"annotation {name!r} has no effect on a ServiceImport")
        for name, value in unread
        if value is not None
    ]
    return keys._replace(notices=(*keys.notices, *notices))


def bad_annotation(found: BadAnnotation) -> Notice:
    """The notice about an annotation of a Service that has an unknown name, or no text for a value, or is a label."""
    if found.value:
        text = f"annotation {found.name!r}: {expected_text(found.value)}; it has no effect"
        return Notice("annotation", "error", text)
    own = found.name.lower().startswith(DOMAIN)
    return Notice("annotation", "error" if own else "warning", problem_of_name(found))


def _without_effect(inputs: TopologyInputs) -> Iterator[Notice]:
    """Warnings about annotations that change nothing on a Service without topology keys."""
    others = ((TTL, inputs.ttl), (APPLY_TO, inputs.apply_to))
    for name in (*_guards_of_keys(inputs), *(name for name, value in others if value is not None)):
        yield Notice("annotation", "warning", f"annotation {name!r} has no effect without topology keys")


def _guards_of_keys(inputs: TopologyInputs) -> Iterator[str]:
    """The annotations of guards that pass over keys, as far as there are any."""
    guards = ((MIN_ENDPOINTS, inputs.min_endpoints), (MAX_LOAD, inputs.max_load))
    return (name for name, value in guards if value is not None)


def _unused_annotations(
    service: Service, sources: Sequence[KeySource], policy: Policy | InvalidPolicy | None
) -> Iterator[str]:
    """Warnings about known annotations that are not read here, or not without others, or have an unknown value."""
    inputs = service.topology
    if isinstance(policy, Policy) and not policy.keys:
        yield from (f"annotation {name!r} has no effect on hints" for name in _guards_of_keys(inputs))
    if not service.headless:
        if inputs.max_endpoints is not None and not service.imported:
            yield f"annotation {MAX_ENDPOINTS!r} has no effect: the Service is not headless"
        return
    for source, name, value in (
        (KeySource.ANNOTATION, TOPOLOGY_KEYS, inputs.annotation),
        (KeySource.SUPEREDGE, SUPEREDGE, inputs.superedge),
    ):
        if value is not None and source not in sources:
            yield f"annotation {name!r} has no effect: `{source.value}` is not in `keys` of the Corefile"
    if (inputs.openyurt or "").strip() and KeySource.OPENYURT in sources and _from_openyurt(inputs) is None:
        yield (
            "annotation 'openyurt.io/topologyKeys' has no effect: expected kubernetes.io/hostname, "
            f"openyurt.io/nodepool or kubernetes.io/zone, found {_shown(inputs.openyurt or '')}"
        )


def policy_of(service: Service, sources: Sequence[KeySource]) -> Policy | InvalidPolicy | None:
    """The policy of the first of `sources` that has a value; None: no filtering.

    An invalid value decides too: it does not fall through to the next source. So does topodns' own annotation if it is
    an empty list or `none`: no filtering. The other sources have no value if absent or empty; OpenYurt and
    trafficDistribution also if their value is unknown, internalTrafficPolicy unless it is Local. HINTS always has a
    value (the hints themselves are on the endpoints), so sources after it are never read.
    Only headless Services have a policy: traffic to a ClusterIP is routed by kube-proxy.
    """
    return _decided(_of_first_source(service, sources), service, guards_of(service))


def _decided(found: Policy | InvalidPolicy | None, service: Service, guards: Guards) -> Policy | InvalidPolicy | None:
    if isinstance(found, InvalidPolicy):
        return replace(found, near_only=guards.near_only)
    return _completed(found, service, guards)


def _completed(policy: Policy | None, service: Service, guards: Guards) -> Policy | None:
    """The policy with the TTL and the guards of a Service; None for one that filters nothing."""
    if policy is None or policy.is_empty:
        return None
    if policy.warnings:
        policy = replace(policy, warnings=tuple(f"{policy.source.written}: {each}" for each in policy.warnings))
    return guarded(_with_ttl(policy, service.topology.ttl), guards)


def misplaced(service: Service, sources: Sequence[KeySource]) -> str | None:
    """A warning if topodns' own annotation is in `sources` and has keys on a Service that is not headless; else None.

    Invalid keys count too. The other sources are normal there: kube-proxy, YurtHub or lite-apiserver act on them.
    """
    if service.headless or KeySource.ANNOTATION not in sources:
        return None
    policy = _from_annotation(service.topology)
    if policy is None or (isinstance(policy, Policy) and policy.is_empty):
        return None
    if service.imported:
        return "topology keys have no effect here: the ServiceImport is not headless"
    return "topology keys have no effect here: the Service is not headless"


def overridden(service: Service, sources: Sequence[KeySource]) -> str | None:
    """A notice if topodns' own annotation and OpenYurt's, both in `sources`, are set on a headless Service; else None.

    It names the effective source: the first of `sources` that has a value. OpenYurt's counts only with a known value.
    """
    inputs = service.topology
    if not service.headless or inputs.annotation is None or inputs.openyurt is None:
        return None
    if KeySource.ANNOTATION not in sources or KeySource.OPENYURT not in sources or _from_openyurt(inputs) is None:
        return None
    winner = next(source.value for source in sources if _READERS[source](inputs) is not None)
    return (
        f"both topodns.io/topology-keys and openyurt.io/topologyKeys are set; `{winner}` is first in `keys`, and wins"
    )


def _of_first_source(service: Service, sources: Sequence[KeySource]) -> Policy | InvalidPolicy | None:
    """The value of the first source that has one, valid or not; None of a Service that is not headless."""
    if service.headless:
        for source in sources:
            policy = _READERS[source](service.topology)
            if policy is not None:
                return policy
    return None


def _from_annotation(inputs: TopologyInputs) -> Policy | InvalidPolicy | None:
    return parse_list(inputs.annotation, KeySource.ANNOTATION)


def parse_list(text: str | None, source: KeySource) -> Policy | InvalidPolicy | None:
    """The keys of an annotation of topodns, or of the Corefile's `default`; None for a blank text or none.

    `[]` and `none` are a policy without keys.
    """
    if text is None or not text.strip():
        return None
    if len(text) > MAX_KEYS_TEXT:
        return InvalidPolicy(source, _TOO_LONG)
    text = text.strip()
    is_json = text.startswith(("[", "{", '"'))
    keys = _json_strings(text) if is_json else tuple(key.strip() for key in text.split(","))
    if keys is None:
        return InvalidPolicy(source, f"expected a JSON array of strings, found {_shown(text)}")
    if keys in ((), (SWITCHED_OFF,)):
        return Policy((), source)
    return _validated(source, keys, commas=not is_json)


def _from_field(inputs: TopologyInputs) -> Policy | InvalidPolicy | None:
    return _validated(KeySource.FIELD, inputs.field) if inputs.field else None


def _from_openyurt(inputs: TopologyInputs) -> Policy | None:
    """The policy for the three values that YurtHub knows, none of which is a list; None for all others.

    `kubernetes.io/zone` means the node pool.
    """
    match inputs.openyurt:
        case "kubernetes.io/hostname":
            return Policy((HOSTNAME_LABEL,), KeySource.OPENYURT)
        case "openyurt.io/nodepool" | "kubernetes.io/zone":
            return Policy((NODE_POOL_LABEL,), KeySource.OPENYURT, keys_if_unlabelled=(HOSTNAME_LABEL,))
    return None


def _from_superedge(inputs: TopologyInputs) -> Policy | InvalidPolicy | None:
    if inputs.superedge is not None and len(inputs.superedge) > MAX_KEYS_TEXT:
        return InvalidPolicy(KeySource.SUPEREDGE, _TOO_LONG)
    text = (inputs.superedge or "").strip()
    if not text:
        return None
    keys = _json_strings(text)
    if keys is None:
        return InvalidPolicy(KeySource.SUPEREDGE, f"expected a JSON array of strings, found {_shown(text)}")
    return _validated(KeySource.SUPEREDGE, keys) if keys else None


def _from_traffic_distribution(inputs: TopologyInputs) -> Policy | None:
    """KEP-4444 and KEP-3015: preferences, so `*` is last; PreferClose is the older name of PreferSameZone.

    None for other values.
    """
    match inputs.traffic_distribution:
        case "PreferClose" | "PreferSameZone":
            return Policy((ZONE_LABEL, ANY_KEY), KeySource.TRAFFIC_DISTRIBUTION)
        case "PreferSameNode":
            return Policy((HOSTNAME_LABEL, ZONE_LABEL, ANY_KEY), KeySource.TRAFFIC_DISTRIBUTION)
    return None


def _from_internal_traffic_policy(inputs: TopologyInputs) -> Policy | None:
    """KEP-2086: Local is the client's Node only, without fallback.

    None for other values, such as Cluster, the API's default: the next source is read.
    """
    if inputs.internal_traffic_policy != "Local":
        return None
    return Policy((HOSTNAME_LABEL,), KeySource.INTERNAL_TRAFFIC_POLICY)


def _from_hints(_: TopologyInputs) -> Policy:
    return Policy((), KeySource.HINTS)


_READERS: Final[Mapping[KeySource, Callable[[TopologyInputs], Policy | InvalidPolicy | None]]] = {
    KeySource.ANNOTATION: _from_annotation,
    KeySource.FIELD: _from_field,
    KeySource.OPENYURT: _from_openyurt,
    KeySource.TRAFFIC_DISTRIBUTION: _from_traffic_distribution,
    KeySource.HINTS: _from_hints,
    KeySource.INTERNAL_TRAFFIC_POLICY: _from_internal_traffic_policy,
    KeySource.SUPEREDGE: _from_superedge,
}

NAMED_SOURCES: Final = tuple(_READERS)  # those that the Corefile's option `keys` can name


def _json_strings(text: str) -> tuple[str, ...] | None:
    """The strings of a JSON array of strings; None for any other text."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):  # RecursionError: brackets nested a thousand deep
        return None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        return None
    return tuple(values)


def _validated(source: KeySource, keys: tuple[str, ...], commas: bool = False) -> Policy | InvalidPolicy:
    """`commas`: the keys were separated by commas."""
    problem = _problem(source, keys, commas)
    return InvalidPolicy(source, problem) if problem else _mended(source, keys)


def _problem(source: KeySource, keys: tuple[str, ...], commas: bool) -> str | None:
    """A message if the list, as written, has more than MAX_KEYS keys, else about its first invalid key; None: valid.

    These are rules of ValidateService in 1.17. `_mended` handles its other two, on `*` and on repeated keys.
    """
    if len(keys) > MAX_KEYS:
        return f"expected at most {MAX_KEYS} keys, found {len(keys)}"
    bad = next((key for key in keys if not _is_key(key, source)), None)
    if bad is None:
        return None
    found = f"{_shown(bad)}{_advice(bad, source, commas)}"
    if OTHER in bad and source in _WITH_OTHERS:
        return f"expected KEY, !KEY or *, found {found}"
    return f"expected a label key or *, found {found}"


def _is_key(text: str, source: KeySource) -> bool:
    """Whether this is a key. One of anti-affinity can only be in a list of topodns' own."""
    return text == ANY_KEY or is_label_key(label_name(text) if source in _WITH_OTHERS else text)


def _advice(bad: str, source: KeySource, commas: bool) -> str:
    """What may be meant by a key that is none, in parentheses; "" for nothing. The chart's policy has the same rule."""
    if len(bad) > _SHOWN_CHARACTERS:
        return ""
    if commas and not bad:
        return " (a comma too many)"
    words = bad.replace(";", " ").split()
    if commas and words and all(_is_key(word, source) for word in words):
        return " (keys are separated by commas)"
    domain, slash, name = bad.partition("/")
    meant = bad.lower() if label_name(bad.lower()) in _WELL_KNOWN else f"{domain.lower()}{slash}{name}"
    if not (slash and _is_key(meant, source)):
        meant = _other(bad) if source in _WITH_OTHERS else ""
    return f" (did you mean {meant!r}?)" if bad.isascii() and meant and _is_key(meant, source) else ""


def _other(bad: str) -> str:
    """The key that may be meant by one with OTHER in a wrong place, more than once, or beside a blank; "" for none."""
    name = bad.replace(f"{OTHER} ", "").replace(f" {OTHER}", "").replace(OTHER, "")
    return "" if OTHER not in bad or not name else name if name == ANY_KEY else f"{OTHER}{name}"


def _mended(source: KeySource, keys: tuple[str, ...]) -> Policy:
    """A policy without the keys that can never win: those after `*`, and repeated ones. Each of the two adds a warning.

    Kubernetes 1.17 refused both; here they are dropped, because they cannot change the outcome.
    """
    reachable = keys[: keys.index(ANY_KEY) + 1] if ANY_KEY in keys else keys
    distinct = tuple(dict.fromkeys(reachable))
    warnings = []
    if len(reachable) < len(keys):
        warnings.append(f"keys after * are ignored: {', '.join(keys[len(reachable) :])}")
    if len(distinct) < len(reachable):
        repeated = dict.fromkeys(key for key in reachable if reachable.count(key) > 1)
        warnings.append(f"repeated keys are ignored: {', '.join(repeated)}")
    return Policy(distinct, source, warnings=tuple(warnings))


def _with_ttl(policy: Policy, text: str | None) -> Policy:
    """The policy with the seconds of topodns.io/ttl, clamped to 1..300; without one if the text is not a whole number
    of at most 18 digits.

    Either correction adds a warning. `text` None: the policy as it is.
    """
    if text is None:
        return policy
    expected = f"annotation {TTL!r}: expected {MIN_TTL} to {MAX_TTL} seconds, found {_shown(text)}"
    if not _WHOLE_NUMBER.fullmatch(text.strip()):
        return replace(policy, warnings=(*policy.warnings, f"{expected}, which is ignored"))
    asked = int(text)
    ttl = min(max(asked, MIN_TTL), MAX_TTL)
    if ttl == asked:
        return replace(policy, ttl=ttl)
    return replace(policy, ttl=ttl, warnings=(*policy.warnings, f"{expected}, taken as {ttl}"))


def guarded(policy: Policy, guards: Guards) -> Policy:
    """The policy with the guards of a Service, and a warning about each that changes no answer."""
    if guards == _UNGUARDED:
        return policy
    policy = replace(policy, min_endpoints=guards.min_endpoints, max_load=guards.max_load, near_only=guards.near_only)
    keys = ",".join(policy.keys)
    idle = (f"annotation {name!r} has no effect on the keys {keys}" for name in idle_guards(policy))
    return replace(policy, warnings=(*policy.warnings, *idle))


def _shown(text: str) -> str:
    if not text:
        return "nothing"
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")
