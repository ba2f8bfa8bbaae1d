"""Audit of the topology policies of a cluster's Services, for the log and `check`: invalid, without effect, harmful."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from topodns.cluster.model import InvalidPolicy, ObjectKey
from topodns.cluster.state import ClusterState

_GOVERNING: Final = (
    "topology keys on the governing Service of a StatefulSet hide its members from each other when they look up the "
    "Service's name; give clients a headless Service of their own"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of one Service's policy. `kind` is one of

    invalid: the key list breaks a rule. mended: parts of the list are ignored, or topodns.io/ttl is ignored or clamped.
    governing: the Service is a StatefulSet's governing one, so its members may not find each other. misplaced: the
    Service has keys, but is not headless. overridden: two annotations are set, one of them wins.
    """

    service: ObjectKey
    kind: str
    text: str

    def __str__(self) -> str:
        return f"Service {self.service.namespace}/{self.service.name}: {self.text}"


def audit(state: ClusterState, ignored: bool) -> Iterator[Finding]:
    """All findings, in no particular order.

    `ignored` is on_invalid: True (ignore) leaves a Service with an invalid policy unfiltered, False (deny) empties it.
    """
    governing = state.governing_services()
    for key, policy in state.policies.items():
        if isinstance(policy, InvalidPolicy):
            effect = "the Service stays unfiltered" if ignored else "no client gets an endpoint (on_invalid deny)"
            yield Finding(key, "invalid", f"topology {policy.source.value}: {policy.problem}; {effect}")
            continue
        for warning in policy.warnings:
            yield Finding(key, "mended", f"topology {policy.source.value}: {warning}")
        if key in governing and not policy.asks_nothing:
            yield Finding(key, "governing", _GOVERNING)
    for key, notice in state.policy_notices().items():
        service = state.service(key)
        yield Finding(key, "overridden" if service is not None and service.headless else "misplaced", notice)
