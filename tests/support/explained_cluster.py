"""A small cluster whose answers are explained: three Nodes, headless Services with keys and without, one ClusterIP."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from tests.support.corefile_settings import settings
from topodns.inspect.explain import ExplainQuestion, Explanation, explanation_steps, parse_question
from topodns.inspect.sources import manifest_clusters
from topodns.plugins.block import Settings
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.time_slices import do_at_once

_MANIFEST: Final = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- apiVersion: v1
  kind: Node
  metadata: {name: one, labels: {rack: "1", hall: north}}
  status: {addresses: [{type: InternalIP, address: 10.0.0.1}]}
- apiVersion: v1
  kind: Node
  metadata: {name: two, labels: {rack: "2", hall: north}}
  status: {addresses: [{type: InternalIP, address: 10.0.0.2}]}
- apiVersion: v1
  kind: Node
  metadata: {name: far, labels: {hall: south}}
  spec: {podCIDRs: [10.3.0.0/16]}
  status: {addresses: [{type: InternalIP, address: 10.0.0.3}]}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: soft, annotations: {topodns.io/topology-keys: "rack,hall,*"}}
  spec: {clusterIP: None}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: hard, annotations: {topodns.io/topology-keys: "rack,hall"}}
  spec: {clusterIP: None}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: wrong, annotations: {topodns.io/topology-keys: "not a key"}}
  spec: {clusterIP: None}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: plain}
  spec: {clusterIP: None}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: front}
  spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80}]}
"""
_SLICE: Final = """\
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: shop, name: %(name)s-1, labels: {kubernetes.io/service-name: %(name)s}}
  addressType: IPv4
  endpoints: [{addresses: [10.1.1.1], nodeName: one}, {addresses: [10.1.1.2], nodeName: one}]
"""
_COREFILE: Final = "cluster.local {\n kubernetes {\n manifests cluster.yaml\n }\n %s\n}\n"
_TOPOLOGY: Final = "topology {\n locate nodes\n %s\n}"
_SERVICES: Final = ("soft", "hard", "wrong", "plain")


def write_manifests(directory: Path) -> None:
    """Write the cluster's objects to `cluster.yaml`."""
    slices = "".join(_SLICE % {"name": name} for name in _SERVICES)
    (directory / "cluster.yaml").write_text(_MANIFEST + slices)


def without_topology(directory: Path) -> Settings:
    return settings(_COREFILE % "", str(directory))


def with_topology(directory: Path, option: str = "") -> Settings:
    """The Corefile that locates clients by Node addresses, with one more option of `topology`."""
    return settings(_COREFILE % (_TOPOLOGY % option), str(directory))


def explained(served: Settings, service: str, qtype: str = "A", **client: str) -> Explanation:
    """The explanation of `SERVICE.shop QTYPE`. `client`: its address in `client`, or its Node in `node`."""
    return explained_question(served, {"name": f"{service}.shop.svc.cluster.local", "type": qtype, **client})


def explain_reply(clusters: Collection[Cluster], question: ExplainQuestion) -> Explanation:
    return do_at_once(explanation_steps(clusters, question))


def explained_question(served: Settings, arguments: Mapping[str, str]) -> Explanation:
    return explain_reply(manifest_clusters(served), parse_question(arguments))
