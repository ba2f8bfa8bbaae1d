"""The Pods of clients, and the labels of metadata that CoreDNS's `kubernetes` has.

A Pod is found by the source address of a query, or, behind a node cache, by the address that this names beside its
Node's name, which it may do for Pods of that Node. A client is no Pod if it is a host, if its Pod is not known yet, and
if the Pod shares the address of its Node: that is the address of other processes, too, and behind masquerading of all
Pods there.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from topodns.cluster.model import Pod
from topodns.cluster.state import ClusterState
from topodns.dns.message import Ede, EdeCode, Query, Response
from topodns.dns.name import Name, name_text
from topodns.dns.rrtype import Rcode
from topodns.plugins.kubernetes.answer import parse
from topodns.plugins.kubernetes.question import Fixed, NamespaceNode, PodName, SchemaName, ServiceName, ZonalName
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.zone import Origins
from topodns.query.client_claim import read_claim
from topodns.query.client_scope import ClientScope, client_scope
from topodns.query.deferred import Outcome
from topodns.query.metadata import (
    CLIENT_LABEL,
    CLIENT_NAMESPACE,
    CLIENT_POD_NAME,
    KUBERNETES,
    OF_NAME,
    PARSE_ERROR,
    ReadLabel,
)
from topodns.query.plugin import Client, Resolution, Scope
from topodns.topology.claims import Claim, ClaimTrust, client_pod

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.pod_wait import PodWait

_NAME_CLIENT: Final = Ede(EdeCode.NAME_CLIENT, "the answer depends on the client's Pod: name it")
_UNPARSED: Final[Mapping[str, str]] = {PARSE_ERROR: "invalid query name"}  # CoreDNS's text


class ClientPods:
    """The Pods of the clients of one server block; made only for a block that reads something of them."""

    def __init__(self, state: ClusterState, pod_wait: "PodWait", trust: ClaimTrust | None = None) -> None:
        """`trust`: decides on the claims of node caches; None: no claim counts."""
        self._state = state
        self._pod_wait = pod_wait
        self._trust = trust

    @property
    def complete(self) -> bool:
        """Whether all Pods are known, but for those too new to have reached the watch."""
        return "Pod" in self._state.known

    def of(self, query: Query, client: Client) -> Pod | None:
        """The Pod of the client of this query; None if it is none."""
        claim = self._claim(query, client)
        if claim is None:
            return client_pod(self._state, client.address)
        pod = None if claim.client is None else client_pod(self._state, claim.client)
        return pod if pod is not None and pod.node_name == claim.node_name else None

    def refusal(self, query: Query, client: Client, scope: Scope) -> Resolution | None:
        """REFUSED for the query of a node cache that names no client, which it then asks again; None for others, and
        if an answer of this scope does not depend on the client.
        """
        claim = self._claim(query, client) if scope > Scope.NODE else None
        if claim is None or claim.client is not None:
            return None
        return Resolution(Response(Rcode.REFUSED, flags=0, ede=_NAME_CLIENT), "", Scope.CLIENT)

    def tell(self, query: Query, client: Client, scope: Scope, response: Response) -> None:
        """Add to the response for a node cache for which of its clients the answer is, which has this scope."""
        claim = self._claim(query, client)
        if claim is None or claim.client is None:
            return
        pod = self.of(query, client)
        option = client_scope(ClientScope.NODE if scope <= Scope.NODE else ClientScope.CLIENT)
        if scope is Scope.NAMESPACE and pod is not None:
            option = client_scope(ClientScope.NAMESPACE, pod.namespace)
        response.options = (*response.options, option)

    def is_forwarded(self, query: Query, client: Client) -> bool:
        """Whether a node cache has sent the query."""
        return self._claim(query, client) is not None

    def _claim(self, query: Query, client: Client) -> Claim | None:
        """The claim of a node cache that names its Node, if it counts."""
        edns = query.edns
        if edns is None or not edns.options or self._trust is None:
            return None
        claim = read_claim(edns, subnet_enabled=False)
        node_name = claim.node_name
        return claim if node_name is not None and self._trust.may_name(client.address, node_name) else None

    def arrival(self, query: Query, client: Client) -> Outcome[None] | None:
        """A wait for the Pod of a client that is none so far (`pod_wait`); None where no wait helps."""
        state, claim = self._state, self._claim(query, client)
        address = client.address if claim is None else claim.client
        if address is None or state.pods_with_address(address) or state.nodes.with_address(address) is not None:
            return None
        return self._pod_wait.wait(address)

    def values(self, labels: Sequence[str], address: bytes) -> tuple[str | None, ...]:
        """The values of these labels for the client with this packed source address."""
        pod = client_pod(self._state, address)
        return tuple(None if pod is None else _value(pod, label) for label in labels)


def _value(pod: Pod, label: str) -> str | None:
    if label == CLIENT_NAMESPACE:
        return pod.namespace
    if label == CLIENT_POD_NAME:
        return pod.name
    return dict(pod.labels).get(label.removeprefix(CLIENT_LABEL))


class KubernetesLabels:
    """The labels `kubernetes/...` of one server block."""

    def __init__(self, kubernetes: KubernetesSettings, pods: ClientPods | None, views: bool) -> None:
        """`views`: whether Services have the names `_near.SERVICE` and `_all.SERVICE`."""
        self._views = views
        self._origins = Origins(kubernetes.origins, kubernetes.multicluster)
        self._zonal = kubernetes.zonal
        self._pods = pods

    def find(self, label: str) -> ReadLabel | None:
        """The reader of a label, as `query.metadata.MetadataSource` has it."""
        if label in (CLIENT_NAMESPACE, CLIENT_POD_NAME) or label.startswith(CLIENT_LABEL):
            return partial(self._of_client, label)
        word = label.removeprefix(KUBERNETES)
        return partial(self._of_name, word) if label.startswith(KUBERNETES) and word in OF_NAME else None

    def _of_client(self, label: str, query: Query, client: Client) -> str | None:
        pod = None if self._pods is None else self._pods.of(query, client)
        return None if pod is None else _value(pod, label)

    def _of_name(self, word: str, query: Query, client: Client) -> str | None:
        origin = self._origins.match(query.qname)
        if origin is None:
            return None
        labels = query.qname[: len(query.qname) - len(origin.name)]
        if origin.reverse and labels:
            return _UNPARSED.get(word)
        name = parse(labels, origin.multicluster, self._zonal, self._views)
        parts = _parts(name, labels)
        if parts is _UNPARSED:
            return _UNPARSED.get(word)
        optional = {"cluster": origin.multicluster, "zone": self._zonal, PARSE_ERROR: False}
        return parts.get(word, "") if optional.get(word, True) else None


def _parts(name: SchemaName | None, labels: Name) -> Mapping[str, str]:
    """The parts of a name of the schema, by the words of their labels; `labels` are those in front of the origin."""
    match name:
        case Fixed.APEX | Fixed.SVC | Fixed.POD:
            return {}
        case None | Fixed():
            return _UNPARSED
        case NamespaceNode():
            return {"kind": "pod" if name.pods else "svc", "namespace": _text(name.namespace)}
        case PodName():
            return {"kind": "pod", "namespace": _text(name.namespace), "service": _text(name.label), **_front(labels)}
        case ServiceName():
            ports = {"port-name": _text(name.port), "protocol": _text(name.protocol)}
            several = {"endpoint": _text(name.endpoint), "cluster": _text(*name.cluster.split(".")), **ports}
        case ZonalName():
            several = {"zone": _text(*name.topology_zone.split("."))}
    return {"kind": "svc", "service": _text(name.service), "namespace": _text(name.namespace), **several}


def _front(labels: Name) -> Mapping[str, str]:
    """What CoreDNS takes the labels in front of a Pod's name for: an endpoint, or a port and a protocol."""
    match labels:
        case (endpoint, _, _, _):
            return {"endpoint": _text(endpoint)}
        case (port, protocol, _, _, _):
            return {"port-name": _text(port.removeprefix("_")), "protocol": _text(protocol.removeprefix("_"))}
        case _:
            return {}


def _text(*labels: str) -> str:
    """Labels joined by dots, escaped as in a zone file, so that they break no log line."""
    return name_text(labels)[:-1] if any(labels) else ""
