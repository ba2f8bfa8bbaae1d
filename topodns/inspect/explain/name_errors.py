"""Reasons for NXDOMAIN, as text: which object of the cluster does not exist, or which option leaves it out."""

from ipaddress import ip_address
from typing import Final

from topodns.cluster.model import ObjectKey
from topodns.dns.message import Query
from topodns.dns.name import name_text
from topodns.plugins.kubernetes.answer import answer, name_of
from topodns.plugins.kubernetes.parse import NamespaceNode, PodName, ServiceName, ZonalName
from topodns.plugins.kubernetes.pods import pod_address
from topodns.plugins.kubernetes.question import Missing, NameOrAddress, question_of
from topodns.plugins.kubernetes.zone import KubernetesZone, Origin
from topodns.query.plugin import Client

_ANY_CLIENT: Final = Client(bytes(4), 0, "tcp")  # whether a name exists depends on no client


def name_error_text(kubernetes: KubernetesZone, query: Query) -> str:
    """One clause, without a final dot, on why the name of this query does not exist; "" if it does.

    The name is under an origin of the directive.
    """
    origin = kubernetes.origins.match(query.qname)
    assert origin is not None
    question = question_of(query, _ANY_CLIENT, origin)
    name = name_of(kubernetes, question)
    missing = answer(kubernetes, name, question).missing
    return "" if missing is None else _text(kubernetes, origin, name, missing)


def _text(kubernetes: KubernetesZone, origin: Origin, name: NameOrAddress, missing: Missing) -> str:
    settings = kubernetes.settings
    noendpoints = " (`noendpoints` is set)" if settings.noendpoints else ""
    selected = " with the labels of `labels`" if settings.labels is not None else ""
    if isinstance(name, bytes):
        served = " in the namespaces that `namespaces` lists" if settings.namespaces else ""
        return f"no Service and no ready endpoint{served} has the address {ip_address(name)}{noendpoints}"
    if missing is Missing.PODS:
        return "names of Pods do not exist with `pods disabled`"
    if missing is Missing.NAMESPACE and isinstance(name, (ServiceName, ZonalName, PodName, NamespaceNode)):
        return _namespace_text(kubernetes, name.namespace)
    if isinstance(name, PodName):
        if missing is Missing.POD_ADDRESS:
            return f"{name.label!r} is not an IP address with dashes"
        address = ip_address(pod_address(name.label) or b"")
        return f"no Pod in namespace {name.namespace!r}{selected} has the address {address}"
    if isinstance(name, (ServiceName, ZonalName)):
        kind = "ServiceImport" if origin.multicluster else "Service"
        if missing is Missing.SERVICE:
            return f"no {kind} {name.service!r} in namespace {name.namespace!r}{selected}"
        lacking = _lacking(kubernetes, origin, name, missing)
        return f"{kind} {name.service!r} in namespace {name.namespace!r} {lacking}"
    if origin.reverse:
        return "the name is not the reverse name of an address"
    return f"not a name of the Kubernetes DNS schema, such as SERVICE.NAMESPACE.svc.{name_text(origin.name)}"


def _namespace_text(kubernetes: KubernetesZone, namespace: str) -> str:
    if kubernetes.settings.namespaces and namespace not in kubernetes.settings.namespaces:
        return f"`namespaces` does not list namespace {namespace!r}"
    if ("", namespace) not in kubernetes.state.namespaces:
        return f"no namespace {namespace!r}"
    return f"namespace {namespace!r} does not have the labels of `namespace_labels`"


def _lacking(kubernetes: KubernetesZone, origin: Origin, name: ServiceName | ZonalName, missing: Missing) -> str:
    """Why this name of an existing Service does not exist, as the predicate of a sentence about the Service."""
    service = kubernetes.state.service(ObjectKey(name.namespace, name.service), origin.multicluster)
    headless = service is not None and service.headless
    noendpoints = " (`noendpoints` is set)" if kubernetes.settings.noendpoints else ""
    if missing is Missing.EXTERNAL_NAME and service is not None:
        return f"has an externalName that is not a DNS name: {service.external_name!r}"
    if missing is Missing.BELOW_EXTERNAL_NAME:
        return "is of type ExternalName: no names exist below it"
    if isinstance(name, ZonalName):
        return "is not headless: it has no zone-scoped names"
    if missing is Missing.READY and headless:
        return f"is headless and has no ready endpoint{noendpoints}"
    if missing is Missing.READY:
        return f"has no ready endpoint, and `ignore empty_service` is set{noendpoints}"
    if missing is Missing.PORT:
        return f"has no {'ready endpoint with a ' if headless else ''}{_port_text(name)}"
    if service is not None and service.imported and not name.cluster:  # KEP-1645
        expected = f"{name.endpoint}.CLUSTER.{name.service}"
        return f"is imported: names of its endpoints have the cluster's id before the Service, as in {expected!r}"
    cluster = f" of cluster {name.cluster!r}" if name.cluster else ""
    return f"has no ready endpoint{cluster} named {name.endpoint!r}{noendpoints}"


def _port_text(name: ServiceName) -> str:
    named = f" named {name.port!r}" if name.port else ""
    return f"port{named}" + (f" of protocol {name.protocol!r}" if name.protocol else "")
