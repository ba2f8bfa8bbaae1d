"""What a Service asks for: topology keys from the first source that says something, validated as Kubernetes 1.17 did.

Semantics: docs/topology.md; KEP-536, ValidateService of 1.17-1.21. Pure: a Service in, a Policy or its flaw out.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from topodns.cluster.model import HOSTNAME_LABEL, ZONE_LABEL, Service, TopologyInputs

ANY_KEY: Final = "*"  # any endpoint, wherever the client is; only last
MAX_KEYS: Final = 16  # MaxServiceTopologyKeys of 1.17
NODE_POOL_LABEL: Final = "apps.openyurt.io/nodepool"
MIN_TTL: Final = 1
MAX_TTL: Final = 300

_SWITCHED_OFF: Final = ("none",)
_SHOWN_CHARACTERS: Final = 80  # of an annotation that is quoted in a problem: it may be 256 KiB
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_PREFIX: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_MAX_PREFIX: Final = 253
_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")


class KeySource(Enum):
    """Where keys may come from, in the spelling of the Corefile."""

    ANNOTATION = "annotation"
    FIELD = "field"
    OPENYURT = "openyurt"
    TRAFFIC_DISTRIBUTION = "traffic-distribution"
    HINTS = "hints"
    INTERNAL_TRAFFIC_POLICY = "internal-traffic-policy"
    SUPEREDGE = "superedge"


@dataclass(frozen=True, slots=True)
class Policy:
    """A valid wish. `keys` in order of preference, `*` only last. Empty keys with source HINTS: follow the hints."""

    keys: tuple[str, ...]
    source: KeySource
    keys_if_unlabelled: tuple[str, ...] | None = None  # OpenYurt: used where the client's node lacks keys[0]
    ttl: int | None = None  # seconds, 1..300, from the annotation topodns.io/ttl
    warnings: tuple[str, ...] = ()  # what was mended: keys after "*", repeated keys, a bad ttl

    @property
    def labels(self) -> tuple[str, ...]:
        """Every label whose values may be compared, for one client or another."""
        keys = (*self.keys, *(self.keys_if_unlabelled or ()))
        return tuple(key for key in keys if key != ANY_KEY)

    @property
    def asks_nothing(self) -> bool:
        """Everyone gets everything: what `policy_of` says with None."""
        return not self.keys and self.source is not KeySource.HINTS


@dataclass(frozen=True, slots=True)
class InvalidPolicy:
    """A wish that breaks a rule. The Service stays unfiltered, or empty with `on_invalid deny`."""

    source: KeySource
    problem: str  # names the rule and what was found


def policy_of(service: Service, sources: Sequence[KeySource]) -> Policy | InvalidPolicy | None:
    """What the first source (in the given order) that says something asks for; None: no filtering.

    An invalid wish has been said: it does not fall through to the next source. So has an annotation that is blank,
    an empty list or `none`: it asks for no filtering. Other sources say nothing when they are absent, empty or, as
    OpenYurt, trafficDistribution and internalTrafficPolicy are made, of another value than the known ones. HINTS
    always says something (the hints themselves are on the endpoints), so sources after it are never asked.
    Only headless Services have a policy: a ClusterIP is kube-proxy's to route.
    """
    wish = _first_wish(service.topology, sources) if service.headless else None
    if not isinstance(wish, Policy):
        return wish
    return None if wish.asks_nothing else _with_ttl(wish, service.topology.ttl)


def misplaced(service: Service, sources: Sequence[KeySource]) -> str | None:
    """A warning where topodns' own annotation asks for keys on a Service that is not headless; else None.

    The other sources are at home on such Services, where kube-proxy, YurtHub or lite-apiserver act on them.
    """
    if service.headless or KeySource.ANNOTATION not in sources:
        return None
    wish = _from_annotation(service.topology)
    if wish is None or (isinstance(wish, Policy) and wish.asks_nothing):
        return None
    return "topology keys have no effect here: the Service is not headless"


def _first_wish(inputs: TopologyInputs, sources: Sequence[KeySource]) -> Policy | InvalidPolicy | None:
    for source in sources:
        wish = _READERS[source](inputs)
        if wish is not None:
            return wish
    return None


def _from_annotation(inputs: TopologyInputs) -> Policy | InvalidPolicy | None:
    if inputs.annotation is None:
        return None
    text = inputs.annotation.strip()
    keys = _json_strings(text) if text.startswith(("[", "{", '"')) else _comma_separated(text)
    if keys is None:
        return InvalidPolicy(KeySource.ANNOTATION, f"expected a JSON array of strings, found {_shown(text)}")
    if keys in ((), _SWITCHED_OFF):
        return Policy((), KeySource.ANNOTATION)
    return _validated(KeySource.ANNOTATION, keys)


def _from_field(inputs: TopologyInputs) -> Policy | InvalidPolicy | None:
    return _validated(KeySource.FIELD, inputs.field) if inputs.field else None


def _from_openyurt(inputs: TopologyInputs) -> Policy | None:
    """One value, compared whole; YurtHub filters nothing for any other. Its `kubernetes.io/zone` means the pool."""
    match inputs.openyurt:
        case "kubernetes.io/hostname":
            return Policy((HOSTNAME_LABEL,), KeySource.OPENYURT)
        case "openyurt.io/nodepool" | "kubernetes.io/zone":
            return Policy((NODE_POOL_LABEL,), KeySource.OPENYURT, keys_if_unlabelled=(HOSTNAME_LABEL,))
    return None


def _from_superedge(inputs: TopologyInputs) -> Policy | InvalidPolicy | None:
    text = (inputs.superedge or "").strip()
    if not text:
        return None
    keys = _json_strings(text)
    if keys is None:
        return InvalidPolicy(KeySource.SUPEREDGE, f"expected a JSON array of strings, found {_shown(text)}")
    return _validated(KeySource.SUPEREDGE, keys) if keys else None


def _from_traffic_distribution(inputs: TopologyInputs) -> Policy | None:
    """KEP-4444 and KEP-3015: preferences, never strict; PreferClose is the older name of PreferSameZone."""
    match inputs.traffic_distribution:
        case "PreferClose" | "PreferSameZone":
            return Policy((ZONE_LABEL, ANY_KEY), KeySource.TRAFFIC_DISTRIBUTION)
        case "PreferSameNode":
            return Policy((HOSTNAME_LABEL, ZONE_LABEL, ANY_KEY), KeySource.TRAFFIC_DISTRIBUTION)
    return None


def _from_internal_traffic_policy(inputs: TopologyInputs) -> Policy | None:
    """KEP-2086: Local is the client's node or nothing; Cluster is the API's default and asks for nothing."""
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


def _comma_separated(text: str) -> tuple[str, ...]:
    return tuple(key.strip() for key in text.split(",")) if text else ()


def _json_strings(text: str) -> tuple[str, ...] | None:
    """The strings of a JSON array; None for anything else."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):  # RecursionError: brackets nested a thousand deep
        return None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        return None
    return tuple(values)


def _validated(source: KeySource, keys: tuple[str, ...]) -> Policy | InvalidPolicy:
    problem = _problem(keys)
    return InvalidPolicy(source, problem) if problem else _mended(source, keys)


def _problem(keys: tuple[str, ...]) -> str | None:
    """The first rule of ValidateService that the list as written breaks beyond mending."""
    if len(keys) > MAX_KEYS:
        return f"expected at most {MAX_KEYS} keys, found {len(keys)}"
    return next((f"expected a label key or *, found {_shown(key)}" for key in keys if not _is_key(key)), None)


def _is_key(key: str) -> bool:
    """A qualified label name: an optional DNS subdomain and "/", then at most 63 of alphanumerics and `-_.`."""
    if key == ANY_KEY:
        return True
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _MAX_PREFIX or not _LABEL_PREFIX.fullmatch(prefix)):
        return False
    return _LABEL_NAME.fullmatch(name) is not None


def _mended(source: KeySource, keys: tuple[str, ...]) -> Policy:
    """Without what can never be reached. The API refused both flaws; the outcome at run time is the same."""
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
    """With the seconds of topodns.io/ttl, held to the allowed range; without any where it is no number."""
    if text is None:
        return policy
    expected = f"topodns.io/ttl: expected {MIN_TTL} to {MAX_TTL} seconds, found {_shown(text)}"
    if not _WHOLE_NUMBER.fullmatch(text.strip()):
        return replace(policy, warnings=(*policy.warnings, f"{expected}, which is ignored"))
    asked = int(text)
    ttl = min(max(asked, MIN_TTL), MAX_TTL)
    if ttl == asked:
        return replace(policy, ttl=ttl)
    return replace(policy, ttl=ttl, warnings=(*policy.warnings, f"{expected}, taken as {ttl}"))


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")
