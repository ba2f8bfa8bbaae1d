"""Which claims of a client's location count: the node identity (EDNS option 65518) and the Client Subnet (RFC 7871).

Every Pod can send both options, so that a claim counts only by the source address of the query.
"""

from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topodns.cluster.state import ClusterState


@dataclass(frozen=True, slots=True)
class Claim:
    """The client's location by the EDNS options of a query. `ClaimTrust` decides which claims count."""

    node_name: str | None = None  # EDNS option 65518, decoded
    subnet: tuple[bytes, int] | None = None  # EDNS Client Subnet: packed address (4 or 16 octets), source prefix length


class ClaimTrust:
    """The claims that count from each source. `trust`: the sources (packed) of which every claim counts."""

    def __init__(self, state: "ClusterState", trust: Container[bytes] = ()) -> None:
        self._state = state
        self._trust = trust

    def trusts(self, source: bytes) -> bool:
        """Whether ECS from this source counts. For other sources ECS is not enabled: neither read nor echoed.

        (RFC 7871 section 7.2.1: a server that has not enabled ECS ignores the option and sends none.)
        """
        return source in self._trust

    def may_name(self, source: bytes, node_name: str) -> bool:
        """Whether a source may claim that its client is on this Node.

        A trusted source may name any Node, another one only the Node that has the source's address.

        An untrusted source with an address of the Node is a node cache, a hostNetwork Pod or, with masquerading, any
        Pod of the Node; the method `nodes` would mostly find the same. The first two addresses of a pod CIDR count as
        the Node's: queries of a node cache on the server's own Node come from the bridge's address, which is in no Node
        object. No proof is needed there that Pods get addresses from pod CIDRs: claim and CIDR agree independently.
        """
        if source in self._trust:
            return True
        nodes = self._state.nodes
        owner = nodes.with_address(source) or nodes.with_pod_gateway(source)
        return owner is not None and owner.name == node_name
