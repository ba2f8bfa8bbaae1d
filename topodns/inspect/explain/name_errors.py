"""Reasons for NXDOMAIN: which object of the cluster does not exist, or which option leaves it out.

`plugins.kubernetes.handler` answers without them, so this module repeats its order of checks.
"""

from ipaddress import ip_address
from typing import Final

from topodns.cluster.model import ObjectKey, Service
from topodns.cluster.state import ClusterState
from topodns.dns.name import Name, name_text, reverse_address
from topodns.dns.rrtype import RRType
from topodns.plugins.kubernetes.external_name import target_of
from topodns.plugins.kubernetes.namespaces import exposes
from topodns.plugins.kubernetes.parse import NamespaceNode, PodName, ServiceName, ZonalName, parse
from topodns.plugins.kubernetes.pods import pod_address
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode
from topodns.plugins.kubernetes.zone import Origin, Origins

_PTR: Final = int(RRType.PTR)


class NameErrors:
    """Explains the NXDOMAIN answers of one `kubernetes` directive."""

    def __init__(self, settings: KubernetesSettings, state: ClusterState) -> None:
        self._settings = settings
        self._state = state
        self._origins = Origins(settings.origins, settings.multicluster)

    def reason(self, qname: Name, qtype: int) -> str:
        """One clause, without a final dot, on why this lower-case name does not exist.

        Expects a name that `ClusterZone` answers with NXDOMAIN for this type; of other names the clause is not true.
        """
        origin = self._origins.match(qname)
        if origin is None:
            return "the name is in no zone of the directive"
        address = reverse_address(qname)
        if address is not None and (origin.reverse or qtype == _PTR or not origin.name):
            return self._of_address(address)
        if origin.reverse:
            return "the name is not the reverse name of an address"
        name = parse(qname[: len(qname) - len(origin.name)], origin.multicluster, self._settings.zonal)
        if isinstance(name, PodName):
            return self._of_pod(name)
        if isinstance(name, NamespaceNode):
            return (self._pods_disabled() if name.pods else "") or self._of_namespace(name.namespace)
        if isinstance(name, (ServiceName, ZonalName)):
            return self._of_namespace(name.namespace) or self._of_service(name, origin)
        return f"not a name of the Kubernetes DNS schema, such as SERVICE.NAMESPACE.svc.{name_text(origin.name)}"

    def _of_address(self, address: bytes) -> str:
        served = " in the namespaces that `namespaces` lists" if self._settings.namespaces else ""
        return f"no Service and no ready endpoint{served} has the address {ip_address(address)}{self._noendpoints()}"

    def _of_pod(self, name: PodName) -> str:
        if reason := self._pods_disabled() or self._of_namespace(name.namespace):
            return reason
        address = pod_address(name.label)
        if address is None:
            return f"{name.label!r} is not an IP address with dashes"
        return f"no Pod in namespace {name.namespace!r}{self._selected()} has the address {ip_address(address)}"

    def _pods_disabled(self) -> str:
        return "names of Pods do not exist with `pods disabled`" if self._settings.pods is PodMode.DISABLED else ""

    def _of_namespace(self, namespace: str) -> str:
        """Why names in the namespace do not exist; "" if they may."""
        if exposes(self._settings, self._state, namespace):
            return ""
        if self._settings.namespaces and namespace not in self._settings.namespaces:
            return f"`namespaces` does not list namespace {namespace!r}"
        if ("", namespace) not in self._state.namespaces:
            return f"no namespace {namespace!r}"
        return f"namespace {namespace!r} does not have the labels of `namespace_labels`"

    def _noendpoints(self) -> str:
        return " (`noendpoints` is set)" if self._settings.noendpoints else ""

    def _selected(self) -> str:
        return " with the labels of `labels`" if self._settings.labels is not None else ""

    def _of_service(self, name: ServiceName | ZonalName, origin: Origin) -> str:
        kind = "ServiceImport" if origin.multicluster else "Service"
        service = self._state.service(ObjectKey(name.namespace, name.service), origin.multicluster)
        if service is None:
            return f"no {kind} {name.service!r} in namespace {name.namespace!r}{self._selected()}"
        return f"{kind} {name.service!r} in namespace {name.namespace!r} {self._lacking(name, service)}"

    def _lacking(self, name: ServiceName | ZonalName, service: Service) -> str:
        """Why this name of an existing Service does not exist, as the predicate of a sentence about the Service."""
        if service.external_name is not None:
            if target_of(service.external_name) is None:
                return f"has an externalName that is not a DNS name: {service.external_name!r}"
            return "is of type ExternalName: no names exist below it"
        if isinstance(name, ZonalName):
            return "is not headless: it has no zone-scoped names"
        noendpoints = self._noendpoints()
        if name.endpoint and service.imported and not name.cluster:  # KEP-1645
            expected = f"{name.endpoint}.CLUSTER.{name.service}"
            return f"is imported: names of its endpoints have the cluster's id before the Service, as in {expected!r}"
        if name.endpoint:
            cluster = f" of cluster {name.cluster!r}" if name.cluster else ""
            return f"has no ready endpoint{cluster} named {name.endpoint!r}{noendpoints}"
        backends = self._state.backends(service.key, service.imported)
        ready = backends.has_ready and not self._settings.noendpoints
        if not ready and service.headless:
            return f"is headless and has no ready endpoint{noendpoints}"
        if not ready and self._settings.ignore_empty_service:
            return f"has no ready endpoint, and `ignore empty_service` is set{noendpoints}"
        return f"has no {'ready endpoint with a ' if service.headless else ''}{_port_text(name)}"


def _port_text(name: ServiceName) -> str:
    named = f" named {name.port!r}" if name.port else ""
    return f"port{named}" + (f" of protocol {name.protocol!r}" if name.protocol else "")
