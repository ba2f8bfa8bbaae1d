"""The search lists of the Pods of a cluster that is watched."""

from collections.abc import Mapping

from topodns.cluster.facts import namespace_fact, service_fact
from topodns.cluster.model import ObjectKey
from topodns.cluster.state import ClusterState
from topodns.dns.names import Name
from topodns.resolve.exposure import Exposure
from topodns.resolve.origins import Origins
from topodns.resolve.search_list import Domains, SearchList, behind_namespace
from topodns.resolve.step import Client, Scope
from topodns.settings.kubernetes import KubernetesSettings


class ClusterSearch:
    """The lists of Pods: `NAMESPACE.svc.ORIGIN svc.ORIGIN ORIGIN` and `host_domains`."""

    def __init__(self, settings: KubernetesSettings, state: ClusterState, host_domains: tuple[Name, ...]) -> None:
        self._origins = Origins(settings.origins, settings.multicluster)
        self._exposure = Exposure(settings, state)
        self._state = state
        self._others: Mapping[Name, Domains] = {
            origin: behind_namespace(origin, host_domains) for origin in settings.origins
        }
        self._knows_pods = "Pod" in state.needed

    def covers(self, qname: Name) -> bool:
        origin = self._origins.match(qname)
        if origin is None or origin.reverse or origin.multicluster:
            return False
        at = len(qname) - len(origin.name) - 1  # of `svc`
        return at >= 2 and qname[at] == "svc"

    def search_list(self, qname: Name, client: Client) -> SearchList:
        origin = self._origins.match(qname)
        assert origin is not None
        at = len(qname) - len(origin.name) - 2  # of the namespace
        namespace, nearest = qname[at], qname[at - 1]
        facts = (namespace_fact(namespace), service_fact(namespace, nearest))
        others = self._others[origin.name]
        if at >= 2 and self._exposure.exposes(namespace) and self._state.service(ObjectKey(namespace, nearest)) is None:
            return SearchList(at, others, facts)
        if not self._knows_pods:
            return SearchList(at, (), facts)
        return SearchList(at, others if self._is_in(client, namespace) else (), facts, Scope.CLIENT)

    def _is_in(self, client: Client, namespace: str) -> bool:
        """Whether all Pods at the client's address, which are none on the host's network, are in this namespace."""
        pods = self._state.pods_with_address(client.address)
        return {pod.namespace for pod in pods} == {namespace} and not any(pod.host_network for pod in pods)
