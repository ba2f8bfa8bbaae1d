"""The settings of a `loadbalance` directive."""

from dataclasses import dataclass
from enum import Enum

from topodns.corefile.arguments import Network


class LoadbalancePolicy(Enum):
    ROUND_ROBIN = "round_robin"
    WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True)
class Loadbalance:
    policy: LoadbalancePolicy = LoadbalancePolicy.ROUND_ROBIN
    weight_file: str = ""  # for WEIGHTED
    reload: float = 30.0  # seconds between checks of weight_file; 0: never
    prefer: tuple[Network, ...] = ()  # addresses in these come first
