"""Names of annotations, and which annotation of topodns is meant by each: one table for the server's rule and for the
chart's ValidatingAdmissionPolicy, which has the same regular expressions.
"""

from typing import Final

from topodns.cluster.annotations import APPLY_TO, MAX_ENDPOINTS, MAX_LOAD, MIN_ENDPOINTS, OPENYURT, TOPOLOGY_KEYS, TTL

MEANT: Final = {
    "topodns.io/topologykeys": TOPOLOGY_KEYS,
    "topodns.io/topology-key": TOPOLOGY_KEYS,
    "topodns.io/topologyKeys": TOPOLOGY_KEYS,
    "topodns.io/Topology-Keys": TOPOLOGY_KEYS,
    "Topodns.io/topology-keys": TOPOLOGY_KEYS,
    "topodns.io/toplogy": TOPOLOGY_KEYS,
    "topodns.io/keys": TOPOLOGY_KEYS,
    "topodns.com/topology-keys": TOPOLOGY_KEYS,
    "topodns/topology-keys": TOPOLOGY_KEYS,
    "topdns.io/topology-keys": TOPOLOGY_KEYS,
    "topology-keys": TOPOLOGY_KEYS,
    "topologykeys": TOPOLOGY_KEYS,
    "topolgy-keys": TOPOLOGY_KEYS,
    "toplogy-keys": TOPOLOGY_KEYS,
    "topology-kyes": TOPOLOGY_KEYS,
    "topologys-keys": TOPOLOGY_KEYS,
    "service.kubernetes.io/topology-keys": TOPOLOGY_KEYS,
    "service.kubernetes.io/topologyKeys": TOPOLOGY_KEYS,
    "openyurt.io/topology-keys": OPENYURT,
    "openyurt.io/topologykeys": OPENYURT,
    "topodns.io/tll": TTL,
    "topodns.io/TTL": TTL,
    "topodns.io/ttl-seconds": TTL,
    "topodns.com/ttl": TTL,
    "topodns.io/min-endpoint": MIN_ENDPOINTS,
    "topodns.io/minEndpoints": MIN_ENDPOINTS,
    "topodns.io/minimum": MIN_ENDPOINTS,
    "topodns.io/maxload": MAX_LOAD,
    "topodns.com/max-load": MAX_LOAD,
    "topodns.io/load": MAX_LOAD,
    "topodns.io/max_endpoints": MAX_ENDPOINTS,
    "topodns.io/endpoints": MAX_ENDPOINTS,
    "topodns.io/applyTo": APPLY_TO,
    "topodns.io/apply": APPLY_TO,
    "topodns.io/whatever": "",
}
"""By name; "" where topodns has none like it."""

FOREIGN: Final = (
    "ttl",
    "external-dns.alpha.kubernetes.io/ttl",
    "service.kubernetes.io/topology-mode",
    "service.kubernetes.io/topology-aware-hints",
    "topology.kubernetes.io/zone",
    "topodns.example.com/owner",
    "kubectl.kubernetes.io/last-applied-configuration",
    "example.com/topology",
    "example.com/keys",
)
"""Names that topodns has nothing to do with."""
