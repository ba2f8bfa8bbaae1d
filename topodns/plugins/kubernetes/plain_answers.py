"""Answers to plain questions below one origin, without a Query or a Resolution.

These are the addresses of Services and Pods, SRV records of headless Services, NODATA and NXDOMAIN. For rarer answers,
such as those of ExternalName Services, in namespaces of which objects are left out, or for clients without a location,
the result is None, and the caller has the
chain make them.

`plugins.kubernetes.handler` gives the same answers, to these questions and to all others; tests compare both
(tests/unit/dnsserver/fast_kubernetes).
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import Group, Pool
from topodns.cluster.model import ANY_KEY, EndpointPort, ObjectKey, Policy, Service
from topodns.dns.message import RRset
from topodns.dns.name import is_subdomain, label_wire
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.soa import SHARED_WITH_NAMES, soa_rrset
from topodns.dns.wire_format import COMPRESSIBLE, pack_record_head
from topodns.plugins.kubernetes.endpoints import FAMILIES
from topodns.plugins.kubernetes.parse import ServiceName, matching
from topodns.plugins.kubernetes.pods import pod_address
from topodns.plugins.kubernetes.records import GroupOffer, endpoint_srv_records
from topodns.plugins.kubernetes.settings import PodMode
from topodns.plugins.kubernetes.zone import KubernetesZone, Origin
from topodns.topology.claim_trust import Claim
from topodns.topology.select import Location, Reason, UnknownClient, select

SVC: Final = label_wire("svc")
_POD: Final = label_wire("pod")

# Address family of a query type, and the octets of an address.
_FAMILY_OF_TYPE: Final[dict[int, tuple[int, int]]] = {
    RRType.A: (4, 4),
    RRType.AAAA: (6, 16),
}
_ANY_FIRST: Final = (ANY_KEY,)
_ANY, _UNFILTERED, _UNKNOWN_CLIENT_ALL = Reason.ANY, Reason.UNFILTERED, Reason.UNKNOWN_CLIENT_ALL
# Last labels before the origin under which there are names, or to which more of the SOA is compressed than the origin;
# `svc` has rules of its own.
_OTHER_BRANCHES: Final = frozenset((label_wire("dns-version"), *SHARED_WITH_NAMES))


class PlainAnswer(NamedTuple):
    """The RDATAs of the records; without any, a negative answer with the SOA of the origin.

    `additional`: the addresses of the targets of SRV records. `outcome` and `topology_key` are those of the selection,
    for metrics; "" if no policy could choose.
    """

    rcode: int
    rdatas: tuple[bytes, ...] = ()
    ttl: int = 0  # seconds, of the records
    outcome: str = ""
    topology_key: str = ""
    additional: tuple[RRset, ...] = ()


class _Rule(NamedTuple):
    """How endpoints of one headless Service are selected for one client.

    `policy` and `location` None: everyone gets all endpoints, for the reason `outcome`. `ranks`: SRV answers may have a
    priority for each endpoint instead.
    """

    ttl: int  # seconds, of the records
    outcome: str = ""
    topology_key: str = ""
    ranks: bool = False
    policy: Policy | None = None
    location: Location | None = None


NAME_ERROR: Final = PlainAnswer(Rcode.NXDOMAIN)
NO_DATA: Final = PlainAnswer(Rcode.NOERROR)


class PlainZone:
    """Names below one origin of a `kubernetes` directive, which `serves_plainly`."""

    __slots__ = (
        "_denied",
        "_kubernetes",
        "_locator",
        "_negative",
        "_origin",
        "_pods",
        "_services",
        "_short",
        "_topology",
        "_zonal",
    )

    def __init__(self, kubernetes: KubernetesZone, origin: Origin) -> None:
        self._kubernetes = kubernetes
        self._origin = origin
        self._topology, self._locator = kubernetes.topology, kubernetes.locator
        self._zonal, self._pods = kubernetes.settings.zonal, kubernetes.settings.pods
        self._services = kubernetes.state.services
        self._denied = kubernetes.state.denied
        self._short = kubernetes.state.left_out.namespaces
        self._negative: tuple[int, dict[int, bytes]] = (-1, {})  # serial, and what `negative_record` returns for it

    def service(
        self, service: str, namespace: str, qtype: int, address: bytes, limit: int, claim: Claim | None = None
    ) -> PlainAnswer | None:
        """The answer for the name of a Service, both labels in lower case, to the client at this packed address.

        `qtype`: A, AAAA or SRV. `limit`: octets of the reply; SRV records beyond it are not made, but for the first.
        `claim`: that of the query's EDNS options, without a Client Subnet.
        """
        state = self._kubernetes.state
        if self._denied or not state.synced or namespace in self._short:
            return None
        if ("", namespace) not in state.namespaces:
            return NAME_ERROR
        key = ObjectKey(namespace, service)
        found = self._services.get(key)
        if found is None:
            return NAME_ERROR
        if found.external_name is not None:
            return None
        wanted = _FAMILY_OF_TYPE.get(qtype)
        if wanted is None:
            return self._srv(key, ServiceName(namespace, service), address, limit, claim) if found.headless else None
        family, length = wanted
        if found.headless:
            return self._headless(key, family, address, claim)
        return self._cluster_ips(found, length)

    def other(
        self, labels: list[bytes], qtype: int, address: bytes, limit: int, claim: Claim | None = None
    ) -> PlainAnswer | None:
        """The answer for a name that is not `service`: a Pod's address, SRV records of some ports, NXDOMAIN or None.

        `labels`: those in front of the origin in wire form and lower case, leaf first. The rest is as in `service`.
        """
        state = self._kubernetes.state
        if not labels or self._denied or not state.synced:
            return None
        branch, number = labels[-1], len(labels)
        if branch == _POD:
            return self._pod(labels, qtype)
        if branch != SVC:
            return None if branch in _OTHER_BRANCHES else NAME_ERROR
        if number > 5:
            return None if self._zonal else NAME_ERROR
        if number < 4:
            return None
        namespace, service = labels[-2][1:].decode("latin-1"), labels[-3][1:].decode("latin-1")
        if namespace in self._short:
            return None
        if ("", namespace) not in state.namespaces:
            return NAME_ERROR
        found = self._services.get((namespace, service))
        if found is None:
            return NAME_ERROR
        if number == 4 or qtype != RRType.SRV or not found.headless or found.external_name is not None:
            return None
        port, protocol = (label[1:].decode("latin-1").removeprefix("_") for label in labels[:2])
        name = ServiceName(namespace, service, port=port, protocol=protocol)
        return self._srv(ObjectKey(namespace, service), name, address, limit, claim)

    def _pod(self, labels: list[bytes], qtype: int) -> PlainAnswer | None:
        """As `pods.respond` answers; None for `pod` and `<namespace>.pod`."""
        number = len(labels)
        if number < 3:
            return None
        namespace, mode = labels[-2][1:].decode("latin-1"), self._pods
        state = self._kubernetes.state
        if namespace in self._short:
            return None
        if number > 5 or mode is PodMode.DISABLED or ("", namespace) not in state.namespaces:
            return NAME_ERROR
        address = pod_address(labels[-3][1:].decode("latin-1"))
        if address is None:
            return NAME_ERROR
        if mode is PodMode.VERIFIED and all(pod.namespace != namespace for pod in state.pods_with_address(address)):
            return NAME_ERROR
        wanted = _FAMILY_OF_TYPE.get(qtype)
        if wanted is None:
            return None
        if len(address) != wanted[1]:
            return NO_DATA
        return PlainAnswer(Rcode.NOERROR, (address,), self._kubernetes.settings.ttl)

    def negative_record(self, pointer: int) -> bytes:
        """The SOA record of the origin, as the only record of a negative answer.

        `pointer`: to where the question's name ends in the origin, as a compressed name.
        """
        kubernetes = self._kubernetes
        serial, records = self._negative
        if serial != kubernetes.state.serial:
            serial, records = self._negative = kubernetes.state.serial, {}
        made = records.get(pointer)
        if made is None:
            made = records[pointer] = self._negative_record(pointer.to_bytes(2, "big"), serial)
        return made

    def _negative_record(self, pointer: bytes, serial: int) -> bytes:
        origin = self._origin.wire
        _, rtype, ttl, (rdata,), rclass = soa_rrset(origin, serial, self._kubernetes.settings.ttl)
        numbers_at = len(rdata) - COMPRESSIBLE[RRType.SOA].after
        rdata = rdata[:numbers_at].replace(origin, pointer) + rdata[numbers_at:]
        return pointer + pack_record_head(rtype, rclass, ttl, len(rdata)) + rdata

    def _cluster_ips(self, service: Service, length: int) -> PlainAnswer | None:
        addresses = service.cluster_ips
        if len(addresses) != 1:
            addresses = tuple(dict.fromkeys([each for each in addresses if len(each) == length]))
        elif len(addresses[0]) != length:
            return NO_DATA
        return PlainAnswer(Rcode.NOERROR, addresses, self._kubernetes.settings.ttl) if addresses else NO_DATA

    def _headless(self, key: ObjectKey, family: int, address: bytes, claim: Claim | None) -> PlainAnswer | None:
        """As `topology_filter.decide` decides for one pool; None for misses and for clients without a location."""
        backends = self._kubernetes.state.backends(key)
        if backends.aliases or not backends.has_ready:
            return None
        pool = backends.pools[family]
        if not pool.everyone.endpoints:
            return NO_DATA  # for all clients: not the decision of a policy
        rule = self._rule(key, address, claim)
        if rule is None:
            return None
        group, outcome, topology_key = self._selected(rule, pool)
        if not group.endpoints or outcome is _UNKNOWN_CLIENT_ALL:
            return None
        return PlainAnswer(Rcode.NOERROR, group.addresses, rule.ttl, outcome, topology_key)

    def _srv(
        self, key: ObjectKey, name: ServiceName, address: bytes, limit: int, claim: Claim | None
    ) -> PlainAnswer | None:
        """As `services.respond` answers a headless Service; None for misses and for clients without a location."""
        kubernetes = self._kubernetes
        rule = self._rule(key, address, claim)
        if rule is None or rule.ranks:
            return None
        backends = kubernetes.state.backends(key)
        ports = matching(backends.ports, name) if name.port or name.protocol else backends.ports
        # No more are selected than fit: a Service may have thousands of ports.
        selected = self._selected_by_port(rule, backends, ports)
        first = next(selected, None)
        if first is None or first[2] is _UNKNOWN_CLIENT_ALL:
            return None
        suffix = label_wire(key.name) + label_wire(key.namespace) + SVC + self._origin.wire
        offers = (GroupOffer(group, port, suffix) for group, port, _, _ in chain((first,), selected))
        answer, additional = endpoint_srv_records(offers, kubernetes.labels, rule.ttl, limit)
        if not answer:
            return None  # no port has a number, or no name fits into a message
        _, _, outcome, topology_key = first
        return PlainAnswer(Rcode.NOERROR, answer[0].rdatas, rule.ttl, outcome, topology_key, additional)

    def _selected_by_port(
        self, rule: _Rule, backends: Backends, ports: Iterable[EndpointPort]
    ) -> Iterator[tuple[Group, int | None, str, str]]:
        """(endpoints, port number, reason, winning key) of each port and family with endpoints for the client."""
        for port in ports:
            for family in FAMILIES:
                pool = backends.pool_for_port(family, port)
                if pool.everyone.endpoints:
                    group, outcome, topology_key = self._selected(rule, pool)
                    if group.endpoints:
                        yield group, port.number, outcome, topology_key

    def _rule(self, key: ObjectKey, address: bytes, claim: Claim | None) -> _Rule | None:
        """The rule of this headless Service for the client at this address; None without a location that it needs."""
        kubernetes, topology = self._kubernetes, self._topology
        if topology is None or self._locator is None:
            return _Rule(kubernetes.settings.ttl)
        policy = kubernetes.state.policies.get(key)
        if policy is None:
            return _Rule(kubernetes.settings.ttl, _UNFILTERED)
        if not isinstance(policy, Policy):
            return None
        ttl = kubernetes.ttl_under_policy if policy.ttl is None else policy.ttl
        ranks = topology.srv_priority
        if policy.keys[:1] == _ANY_FIRST:
            return _Rule(ttl, _ANY, ANY_KEY, ranks)
        location = self._locator.locate(address, claim)
        return _Rule(ttl, "", "", ranks, policy, location) if location.node_name else None

    def _selected(self, rule: _Rule, pool: Pool) -> tuple[Group, str, str]:
        """(the endpoints of a pool that has some, the reason or "" if no policy could choose, the winning key)."""
        _, outcome, topology_key, _, policy, location = rule
        topology = self._topology
        if policy is None or location is None or topology is None:
            return pool.everyone, outcome, topology_key
        group, reason, key, _ = select(pool, policy, location, topology.unknown_client, topology.on_invalid)
        return group, reason, key


def plain_zones(kubernetes: KubernetesZone) -> list[tuple[Origin, PlainZone]]:
    """The origins of the directive that `PlainZone` can answer for; none with options that few use.

    An origin is left out if it is reverse, the root, one of ServiceImports, above another one, or if `fallthrough`
    passes on some of its names that do not exist.
    """
    settings, topology = kubernetes.settings, kubernetes.topology
    refuses = topology is not None and topology.unknown_client is UnknownClient.REFUSE
    if refuses or kubernetes.limits_namespaces or settings.noendpoints or settings.ignore_empty_service:
        return []
    return [
        (origin, PlainZone(kubernetes, origin))
        for origin in kubernetes.origins.by_name.values()
        if origin.name and not origin.reverse and not origin.multicluster
        if not any(is_subdomain(each, origin.name) or is_subdomain(origin.name, each) for each in settings.fallthrough)
        if not any(is_subdomain(each, origin.name) for each in kubernetes.origins.by_name if each != origin.name)
    ]
