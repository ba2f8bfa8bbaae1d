"""The specs of Kubernetes 1.36.3 whose results rest on cluster DNS, in groups, and those that are left out, each with
its reason. A name is the text of a spec's containers followed by its own, as `e2e.test --list-tests` prints it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

OF_CLUSTER_DNS: Final = re.compile(r"^\[sig-network\] .*\bDNS\b|KubeDNS")

_BASIC: Final = "[sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic]"

_DNS: Final = (
    "should provide /etc/hosts entries for the cluster [Conformance]",
    "should provide DNS for ExternalName services [Conformance]",
    "should provide DNS for pods for Hostname [Conformance]",
    "should provide DNS for pods for Subdomain [Conformance]",
    "should provide DNS for services [Conformance]",
    "should provide DNS for the cluster [Conformance]",
    "should resolve DNS of partial qualified names for services [LinuxOnly] [Conformance]",
    "should resolve DNS of partial qualified names for the cluster [LinuxOnly]",
    "should support configurable pod DNS nameservers [Conformance]",
    "should support configurable pod resolv.conf",
    "should work with a search path containing an underscore and a search path with a single dot",
    "should work with a service name that starts with a digit [FeatureGate:RelaxedServiceNameValidation] [Beta]",
    "should work with the pod containing more than 6 DNS search paths and longer than 256 search list characters",
)
_HOST_NETWORK: Final = (
    "should resolve DNS of partial qualified names for services on hostNetwork pods with dnsPolicy: "
    "ClusterFirstWithHostNet [LinuxOnly]",
    "spec.Hostname field is not silently ignored and is used for hostname for a Pod",
    "spec.Hostname field is silently ignored and the node hostname is used when hostNetwork is set to true for a Pod",
)
_CONFIG_MAP: Final = (
    "Change stubDomain should be able to change stubDomain configuration [Slow] [Serial]",
    "Forward PTR lookup should forward PTR records lookup to upstream nameserver [Slow] [Serial]",
    "Forward external name lookup should forward externalname lookup to upstream nameserver [Slow] [Serial]",
)
# A client connects to the Service by its name.
_SERVICES: Final = (
    "should allow pods to hairpin back to themselves through services",
    "should be able to change the type from ClusterIP to ExternalName [Conformance]",
    "should be able to change the type from ExternalName to ClusterIP [Conformance]",
    "should be able to change the type from ExternalName to NodePort [Conformance]",
    "should be able to change the type from NodePort to ExternalName [Conformance]",
    "should be able to create a functioning NodePort service [Conformance]",
    "should be able to switch session affinity for NodePort service [LinuxOnly] [Conformance]",
    "should be able to switch session affinity for service with type clusterIP [LinuxOnly] [Conformance]",
    "should be able to update service type to NodePort listening on same port number but different protocols",
    "should be possible to connect to a service via ExternalIP when the external IP is not assigned to a node",
    "should be updated after adding or deleting ports",
    "should connect to the named ports exposed by restartable init containers",
    "should connect to the ports exposed by restartable init containers",
    "should create endpoints for unready pods",
    "should have session affinity timeout work for NodePort service [LinuxOnly]",
    "should have session affinity timeout work for service with type clusterIP [LinuxOnly]",
    "should have session affinity work for NodePort service [LinuxOnly] [Conformance]",
    "should have session affinity work for service with type clusterIP [LinuxOnly] [Conformance]",
    "should serve a basic endpoint from pods [Conformance]",
    "should serve endpoints on same port and different protocol for internal traffic on Type LoadBalancer",
    "should serve multiport endpoints from pods [Conformance]",
    "should support named targetPorts that resolve to different ports on different endpoints",
)
_STATEFUL_SETS: Final = (
    "Burst scaling should run to completion even with unhealthy pods [Slow] [Conformance]",
    "Scaling should happen in predictable order and halt if any stateful pod is unhealthy [Slow] [Conformance]",
    "Should recreate evicted statefulset [Conformance]",
    "should adopt matching orphans and release non-matching pods",
    "should have a working scale subresource [Conformance]",
    "should implement legacy replacement when the update strategy is OnDelete",
    "should list, patch and delete a collection of StatefulSets [Conformance]",
    "should not deadlock when a pod's predecessor fails",
    "should perform canary updates and phased rolling updates of template modifications [Conformance]",
    "should perform canary updates and phased rolling updates of template modifications for partiton1 and delete pod-0 "
    "with failing container",
    "should perform canary updates and phased rolling updates of template modifications for partiton1 and delete pod-0 "
    "without failing container",
    "should perform rolling updates and roll backs of template modifications [Conformance]",
    "should perform rolling updates and roll backs of template modifications with PVCs",
    "should provide basic identity",
    "should validate Statefulset Status endpoints [Conformance]",
)
_ORDINALS: Final = ("Decreasing", "Increasing", "Removing", "Setting")
# A client connects to a Service by its name, or an application or kubectl finds the API server by its name.
_OTHERS: Final = (
    "[sig-auth] ServiceAccounts ServiceAccountIssuerDiscovery should support OIDC discovery of service account issuer "
    "[Conformance]",
    "[sig-cli] Kubectl client Guestbook application should create and stop a working application [Conformance]",
    "[sig-cli] Kubectl client Simple pod should return command exit codes should handle in-cluster config",
    "[sig-network] Service CIDRs should create Services and serve on different Service CIDRs",
    "[sig-network] Topology Hints should distribute endpoints evenly",
    "[sig-network] Traffic Distribution should route traffic correctly between pods on multiple nodes when using "
    "PreferClose",
    "[sig-network] Traffic Distribution should route traffic correctly between pods on multiple nodes when using "
    "PreferSameZone",
    "[sig-network] Traffic Distribution should route traffic to an endpoint in the same zone when using PreferClose",
    "[sig-network] Traffic Distribution should route traffic to an endpoint in the same zone when using PreferSameZone",
    "[sig-network] Traffic Distribution should route traffic to an endpoint on the same node or fall back to same zone "
    "when using PreferSameNode",
    "[sig-network] Traffic Distribution should route traffic to an endpoint on the same node when using PreferSameNode "
    "and fall back when the endpoint becomes unavailable",
)

GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "DNS": [
        *(f"[sig-network] DNS {name}" for name in _DNS),
        *(f"[sig-network] DNS HostNetwork {name}" for name in _HOST_NETWORK),
    ],
    "Services by name": [f"[sig-network] Services {name}" for name in _SERVICES],
    "other clients of names": _OTHERS,
    "StatefulSet identity": [
        *(f"{_BASIC} {name}" for name in _STATEFUL_SETS),
        *(f"[sig-apps] StatefulSet Scaling StatefulSetStartOrdinal {name} .start.ordinal" for name in _ORDINALS),
    ],
    "DNS configMap": [f"[sig-network] DNS configMap nameserver {name}" for name in _CONFIG_MAP],
}

# By a part of the name, for docs/develop/conformance.md as well.
LEFT_OUT: Final[Mapping[str, str]] = {
    "DNS should provide DNS for the cluster [Provider:GCE]": "resolves a name of Google's cloud",
    "[Feature:PerformanceDNS]": "creates 10,000 Services one after the other, here 10 a second",
    "[Feature:Networking-DNS]": "connects to the Internet",
    "[Feature:KubeDNSAutoscaler]": "needs the image of cluster-proportional-autoscaler",
    "StatefulSet Deploy clustered applications": "needs images of CockroachDB, MySQL and ZooKeeper",
    "[sig-network] LoadBalancers": "needs a cloud's load balancer",
    "[sig-network] Netpol": "needs a CNI with network policies",
    "[FeatureGate:PodCertificateRequest]": "needs a feature that is off by default",
    "[sig-windows]": "needs nodes with Windows",
}
