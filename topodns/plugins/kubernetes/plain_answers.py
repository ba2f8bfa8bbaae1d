"""Answers to plain questions below one origin, without a Query or a Resolution.

These are the addresses of Services and Pods, and NXDOMAIN.

`plugins.kubernetes.handler` gives the same answers, to these questions and to all others; tests compare both
(tests/unit/dnsserver/fast_kubernetes). What is rare is None here: the caller asks the handler.
"""

from typing import Final, NamedTuple

from topodns.cluster.model import ANY_KEY, ObjectKey, Policy, Service
from topodns.dns.name import is_subdomain, label_wire
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.soa import soa_rrset
from topodns.dns.wire_format import pack_record_head
from topodns.plugins.kubernetes.pods import pod_address
from topodns.plugins.kubernetes.settings import PodMode
from topodns.plugins.kubernetes.zone import KubernetesZone, Origin
from topodns.topology.select import Reason, UnknownClient, select

SVC: Final = label_wire("svc")
_POD: Final = label_wire("pod")

_FAMILY_OF_TYPE: Final[dict[int, tuple[int, int]]] = {
    RRType.A: (4, 4),
    RRType.AAAA: (6, 16),
}  # and octets of an address
_ANY_FIRST: Final = (ANY_KEY,)
_ANY, _UNFILTERED, _UNKNOWN_CLIENT_ALL = Reason.ANY, Reason.UNFILTERED, Reason.UNKNOWN_CLIENT_ALL
# Last labels before the origin under which there are names; `svc` has rules of its own.
_OTHER_BRANCHES: Final = frozenset(map(label_wire, ("dns", "dns-version")))


class PlainAnswer(NamedTuple):
    """Addresses; without any, a negative answer with the SOA of the origin.

    `outcome` and `topology_key` are those of the selection, for metrics; "" if no policy could choose.
    """

    rcode: int
    rdatas: tuple[bytes, ...] = ()
    ttl: int = 0  # seconds, of the addresses
    outcome: str = ""
    topology_key: str = ""


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
        self._negative = (-1, b"")  # serial, and what `negative_tail` returns for it

    def service(self, service: str, namespace: str, qtype: int, address: bytes) -> PlainAnswer | None:
        """The answer for the name of a Service, both labels in lower case, to the client at this packed address."""
        state = self._kubernetes.state
        if self._denied or not state.synced:
            return None
        if ("", namespace) not in state.namespaces:
            return NAME_ERROR
        key = ObjectKey(namespace, service)
        found = self._services.get(key)
        if found is None:
            return NAME_ERROR
        wanted = _FAMILY_OF_TYPE.get(qtype)
        if wanted is None or found.external_name is not None:
            return None
        family, length = wanted
        if found.headless:
            return self._headless(key, family, address)
        return self._cluster_ips(found, length)

    def other(self, labels: list[bytes], qtype: int) -> PlainAnswer | None:
        """The answer for a name that is not `service`: a Pod's address, NXDOMAIN or None.

        `labels`: those in front of the origin in wire form and lower case, leaf first. `qtype`: A or AAAA.
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
        exists = ("", namespace) in state.namespaces and (namespace, service) in self._services
        return None if exists else NAME_ERROR

    def _pod(self, labels: list[bytes], qtype: int) -> PlainAnswer | None:
        """As `pods.respond` answers; None for `pod` and `<namespace>.pod`."""
        number = len(labels)
        if number < 3:
            return None
        namespace, mode = labels[-2][1:].decode("latin-1"), self._pods
        state = self._kubernetes.state
        if number > 5 or mode is PodMode.DISABLED or ("", namespace) not in state.namespaces:
            return NAME_ERROR
        address = pod_address(labels[-3][1:].decode("latin-1"))
        if address is None:
            return NAME_ERROR
        if mode is PodMode.VERIFIED and all(pod.namespace != namespace for pod in state.pods_with_address(address)):
            return NAME_ERROR
        if len(address) != _FAMILY_OF_TYPE[qtype][1]:
            return NO_DATA
        return PlainAnswer(Rcode.NOERROR, (address,), self._kubernetes.settings.ttl)

    def negative_tail(self) -> bytes:
        """The SOA record of the origin without its owner, as the only record of a negative answer."""
        kubernetes = self._kubernetes
        serial, made = self._negative
        if serial != kubernetes.state.serial:
            serial = kubernetes.state.serial
            rrset = soa_rrset(self._origin.wire, serial, kubernetes.settings.ttl)
            (rdata,) = rrset.rdatas
            made = pack_record_head(rrset.rtype, rrset.rclass, rrset.ttl, len(rdata)) + rdata
            self._negative = serial, made
        return made

    def _cluster_ips(self, service: Service, length: int) -> PlainAnswer | None:
        addresses = service.cluster_ips
        if len(addresses) != 1:
            addresses = tuple(dict.fromkeys([each for each in addresses if len(each) == length]))
        elif len(addresses[0]) != length:
            return NO_DATA
        return PlainAnswer(Rcode.NOERROR, addresses, self._kubernetes.settings.ttl) if addresses else NO_DATA

    def _headless(self, key: ObjectKey, family: int, address: bytes) -> PlainAnswer | None:
        """As `topology_filter.decide` decides for one pool; None for misses and for clients without a location."""
        kubernetes, topology = self._kubernetes, self._topology
        backends = kubernetes.state.backends(key)
        if not backends.has_ready:
            return None
        pool = backends.pools[family]
        everyone = pool.everyone
        if not everyone.endpoints:
            return NO_DATA  # for all clients: not the decision of a policy
        ttl = kubernetes.settings.ttl
        if topology is None or self._locator is None:
            return PlainAnswer(Rcode.NOERROR, everyone.addresses, ttl)
        policy = kubernetes.state.policies.get(key)
        if policy is None:
            return PlainAnswer(Rcode.NOERROR, everyone.addresses, ttl, _UNFILTERED)
        if not isinstance(policy, Policy):
            return None
        ttl = kubernetes.ttl_under_policy if policy.ttl is None else policy.ttl
        if policy.keys[:1] == _ANY_FIRST:
            return PlainAnswer(Rcode.NOERROR, everyone.addresses, ttl, _ANY, ANY_KEY)
        location = self._locator.locate(address)
        if not location.node_name:
            return None
        selection = select(pool, policy, location, topology.unknown_client, topology.on_invalid)
        group, reason = selection.group, selection.reason
        if not group.endpoints or reason is _UNKNOWN_CLIENT_ALL:
            return None
        return PlainAnswer(Rcode.NOERROR, group.addresses, ttl, reason, selection.key)


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
