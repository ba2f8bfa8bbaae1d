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
    srv_answer,
)
from topodns.plugins.kubernetes.parse import ZonalName
from topodns.plugins.kubernetes.records import Facts, address_records, found, no_data
from topodns.plugins.kubernetes.zone import KubernetesZone, ZoneQuestion
from topodns.query.plugin import Resolution


def respond(
    kubernetes: KubernetesZone, name: ZonalName, service: Service, question: ZoneQuestion, facts: Facts
) -> Resolution:
    """The ready endpoints of a headless Service in this topology zone, which is a field of an endpoint in its slice.

    If there are none of either address family, and no alias: NODATA (`pin`) or all ready endpoints (`prefer`).
    """
    backends, ttl = backends_of(kubernetes, service), kubernetes.settings.ttl
    missed = not any(backends.pools[family].by_topology_zone(name.topology_zone).endpoints for family in FAMILIES)
    missed = missed and not is_in_zone(backends, name.topology_zone)
    pick = _everyone if missed and name.prefer else lambda pool: pool.by_topology_zone(name.topology_zone)
    qtype = question.query.qtype
    if qtype == RRType.SRV:
        offers = offers_of((backends, service_wire(service, question)), backends.ports, pick)
        return found(facts, *srv_answer(kubernetes, offers, ttl, question))
    family = FAMILY_OF_TYPE.get(qtype)
    if family is None:
        return no_data(facts)
    return found(facts, address_records(qtype, ttl, pick(backends.pools[family]).addresses))


def _everyone(pool: Pool) -> Group:
    return pool.everyone
