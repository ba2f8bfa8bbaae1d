"""What is wrong with a cluster's topology wishes: invalid, misplaced, or splitting a StatefulSet."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from topodns.cluster.model import ObjectKey
from topodns.cluster.policy import InvalidPolicy
from topodns.cluster.state import ClusterState

_GOVERNING: Final = (
    "topology keys on the governing Service of a StatefulSet hide its members from each other when they look up the "
    "Service's name; give clients a headless Service of their own"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One Service and what its owner should know. `kind`: invalid, mended, governing, misplaced."""

    service: ObjectKey
    kind: str
    text: str

    def __str__(self) -> str:
        return f"Service {self.service.namespace}/{self.service.name}: {self.text}"


def audit(state: ClusterState, ignored: bool) -> Iterator[Finding]:
    """Every finding, in no order. `ignored`: an invalid policy leaves its Service unfiltered, else it is emptied."""
    governing = state.governing_services()
    for key, policy in state.policies().items():
        if isinstance(policy, InvalidPolicy):
            effect = "the Service stays unfiltered" if ignored else "nobody is told any endpoint (on_invalid deny)"
            yield Finding(key, "invalid", f"topology {policy.source.value}: {policy.problem}; {effect}")
            continue
        for warning in policy.warnings:
            yield Finding(key, "mended", f"topology {policy.source.value}: {warning}")
        if key in governing and not policy.asks_nothing:
            yield Finding(key, "governing", _GOVERNING)
    for key, problem in state.misplaced_policies().items():
        yield Finding(key, "misplaced", problem)
