"""Zone-scoped names of headless Services, by the option `zonal`: `ZONE.pin._zone.SERVICE...` and
`ZONE.prefer._zone.SERVICE...`, as in CoreDNS.

Topology keys never filter them: a client that queries such a name has chosen the topology zone itself.
"""

from topodns.cluster.endpoints import Group, Pool
from topodns.cluster.model import Service
from topodns.dns.rrtype import RRType
from topodns.plugins.kubernetes.aliases import is_in_zone
from topodns.plugins.kubernetes.endpoints import (
    FAMILIES,
    FAMILY_OF_TYPE,
    backends_of,
    offers_of,
    service_wire,
)
from topodns.plugins.kubernetes.parse import ZonalName
from topodns.plugins.kubernetes.question import NO_DATA, Answer, ZoneQuestion
from topodns.plugins.kubernetes.records import endpoint_srv_records, srv_answer
from topodns.plugins.kubernetes.zone import KubernetesZone


def answer_zonal(kubernetes: KubernetesZone, name: ZonalName, service: Service, question: ZoneQuestion) -> Answer:
    """The ready endpoints of a headless Service in this topology zone, which is a field of an endpoint in its slice.

    If there are none of either address family, and no alias: NODATA (`pin`) or all ready endpoints (`prefer`).
    """
    backends, ttl = backends_of(kubernetes, service), kubernetes.settings.ttl
    missed = not any(backends.pools[family].by_topology_zone(name.topology_zone).endpoints for family in FAMILIES)
    missed = missed and not is_in_zone(backends, name.topology_zone)
    pick = _everyone if missed and name.prefer else lambda pool: pool.by_topology_zone(name.topology_zone)
    if question.qtype == RRType.SRV:
        offers = offers_of((backends, service_wire(service, question)), backends.ports, pick)
        return srv_answer(endpoint_srv_records(offers, kubernetes.labels, ttl, question.limit), ttl)
    family = FAMILY_OF_TYPE.get(question.qtype)
    return NO_DATA if family is None else Answer(rdatas=pick(backends.pools[family]).addresses, ttl=ttl)


def _everyone(pool: Pool) -> Group:
    return pool.everyone
