"""Words of manifests that nothing reads, and the ones that may be meant."""

from pathlib import Path

import pytest
import yaml

from topodns.cluster.decode.misspelt import misspellings, nearest
from topodns.cluster.decode.objects import RULES

ROOT = Path(__file__).parents[4]


def said(text: str) -> list[str]:
    document = yaml.safe_load(text)
    return list(misspellings(document["kind"], document))


SLICE = "kind: EndpointSlice\napiVersion: discovery.k8s.io/v1\n"


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("kind: Service\nmetadata: {annotation: {a: b}}", "metadata.annotation, did you mean metadata.annotations?"),
        ("kind: Service\nmetadata: {label: {a: b}}", "metadata.label, did you mean metadata.labels?"),
        ("kind: Service\nspec: {topologykeys: ['*']}", "spec.topologykeys, did you mean spec.topologyKeys?"),
        ("kind: Service\nspec: {clusterIp: None}", "spec.clusterIp, did you mean spec.clusterIP?"),
        ("kind: Service\nspec: {ports: [{nmae: dns}]}", "spec.ports[0].nmae, did you mean spec.ports[0].name?"),
        ("kind: Service\nannotations: {a: b}", "annotations, did you mean metadata.annotations?"),
        (f"{SLICE}endpoint: []", "endpoint, did you mean endpoints?"),
        (f"{SLICE}addresstype: IPv4", "addresstype, did you mean addressType?"),
        (f"{SLICE}endpoints: [{{}}, {{node: n, zonE: n}}]", "endpoints[1].zonE, did you mean endpoints[1].zone?"),
        (f"{SLICE}endpoints: [{{targetref: {{}}}}]", "endpoints[0].targetref, did you mean endpoints[0].targetRef?"),
        ("kind: Node\nspec: {podCidr: 10.0.0.0/24}", "spec.podCidr, did you mean spec.podCIDR?"),
        ("kind: Node\nstatus: {address: []}", "status.address, did you mean status.addresses?"),
        ("kind: Pod\nstatus: {podIps: []}", "status.podIps, did you mean status.podIPs?"),
        ("kind: Pod\nspec: {host_network: true}", "spec.host_network, did you mean spec.hostNetwork?"),
        ("kind: StatefulSet\nspec: {servicename: db}", "spec.servicename, did you mean spec.serviceName?"),
    ],
)  # fmt: skip
def test_a_misspelt_field_is_named_with_the_one_that_is_meant(text: str, remark: str) -> None:
    assert said(text) == [f"unknown field {remark}"]


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("kind: service\napiVersion: v1", "kind 'service' is unknown and the object ignored, did you mean 'Service'?"),
        ("kind: Services", "kind 'Services' is unknown and the object ignored, did you mean 'Service'?"),
        (
            "kind: Endpointslice\napiVersion: discovery.k8s.io/v1",
            "kind 'Endpointslice' is unknown and the object ignored, did you mean 'EndpointSlice'?",
        ),
        ("kind: node\napiVersion: v1", "kind 'node' is unknown and the object ignored, did you mean 'Node'?"),
        (
            "kind: EndpointSlice\napiVersion: v1",
            "the object is ignored: EndpointSlice has apiVersion 'v1', "
            "expected discovery.k8s.io/v1 or discovery.k8s.io/v1beta1",
        ),
        (
            "kind: EndpointSlice\napiVersion: discovery.k8s.io/V1",
            "the object is ignored: EndpointSlice has apiVersion 'discovery.k8s.io/V1', "
            "expected discovery.k8s.io/v1 or discovery.k8s.io/v1beta1",
        ),
        (
            "kind: Service\napiVersion: apps/v1",
            "the object is ignored: Service has apiVersion 'apps/v1', expected v1",
        ),
    ],
)
def test_a_misspelt_kind_or_api_version_is_named(text: str, remark: str) -> None:
    assert said(text) == [remark]


@pytest.mark.parametrize(
    "text",
    [
        "kind: Service\napiVersion: serving.knative.dev/v1\nspec: {port: 1}",
        "kind: Node\napiVersion: longhorn.io/v1beta2",
        "kind: ServiceExport\napiVersion: multicluster.x-k8s.io/v1alpha1",
        "kind: services\napiVersion: example.com/v1",
        "kind: Deployment\napiVersion: apps/v1\nmetadata: {label: {}}",
        "kind: Service\nmetadata: 7\nspec: [1]",
        "kind: Service\napiVersion: 5",
    ],
)
def test_what_is_of_others_or_no_object_is_no_misspelling(text: str) -> None:
    assert said(text) == []


WHOLE = """
metadata: {name: a, generateName: a-, namespace: b, selfLink: /, uid: u, resourceVersion: "1", generation: 1,
  creationTimestamp: t, deletionTimestamp: t, deletionGracePeriodSeconds: 1, labels: {}, annotations: {},
  ownerReferences: [], finalizers: [], managedFields: []}
immutable: true
data: {}
type: t
"""
SPECS = {
    "Namespace": "{spec: {finalizers: []}, status: {phase: Active, conditions: []}}",
    "Node": """{spec: {podCIDR: c, podCIDRs: [], providerID: p, unschedulable: true, taints: [], configSource: {},
        externalID: e}, status: {capacity: {}, allocatable: {}, phase: p, conditions: [{type: Ready, status: "True",
        lastHeartbeatTime: t, lastTransitionTime: t, reason: r, message: m}], addresses: [{type: t, address: a}],
        daemonEndpoints: {}, nodeInfo: {}, images: [], volumesInUse: [], volumesAttached: [], config: {},
        runtimeHandlers: [], features: {}}}""",
    "Service": """{spec: {ports: [{name: n, protocol: TCP, appProtocol: h, port: 1, targetPort: 1, nodePort: 1}],
        selector: {}, clusterIP: c, clusterIPs: [], type: t, externalIPs: [], sessionAffinity: s, loadBalancerIP: l,
        loadBalancerSourceRanges: [], externalName: e, externalTrafficPolicy: t, healthCheckNodePort: 1,
        publishNotReadyAddresses: true, sessionAffinityConfig: {}, ipFamilies: [], ipFamilyPolicy: p, topologyKeys: [],
        allocateLoadBalancerNodePorts: true, loadBalancerClass: c, internalTrafficPolicy: p, trafficDistribution: d,
        ipFamily: IPv4}, status: {loadBalancer: {ingress: [{ip: i, hostname: h, ipMode: m, ports: []}]},
        conditions: []}}""",
    "EndpointSlice": """{addressType: IPv4, endpoints: [{addresses: [], conditions: {ready: true, serving: true,
        terminating: true}, hostname: h, targetRef: {kind: Pod, namespace: n, name: n, uid: u, apiVersion: v1,
        resourceVersion: "1", fieldPath: f}, deprecatedTopology: {}, topology: {}, nodeName: n, zone: z,
        hints: {forZones: [{name: z}], forNodes: [{name: n}]}}], ports: [{name: n, protocol: p, port: 1,
        appProtocol: a}]}""",
    "Endpoints": """{subsets: [{addresses: [{ip: i, hostname: h, nodeName: n, targetRef: {kind: Pod}}],
        notReadyAddresses: [], ports: [{name: n, port: 1, protocol: p, appProtocol: a}]}]}""",
    "Pod": """{spec: {volumes: [], initContainers: [], containers: [], ephemeralContainers: [], restartPolicy: r,
        terminationGracePeriodSeconds: 1, activeDeadlineSeconds: 1, dnsPolicy: d, nodeSelector: {},
        serviceAccountName: s, serviceAccount: s, automountServiceAccountToken: true, nodeName: n, hostNetwork: true,
        hostPID: true, hostIPC: true, hostUsers: true, shareProcessNamespace: true, securityContext: {},
        imagePullSecrets: [], hostname: h, hostnameOverride: h, subdomain: s, affinity: {}, schedulerName: s,
        tolerations: [], hostAliases: [], priorityClassName: p, priority: 1, dnsConfig: {}, readinessGates: [],
        runtimeClassName: r, enableServiceLinks: true, preemptionPolicy: p, overhead: {}, schedulingGates: [],
        topologySpreadConstraints: [], setHostnameAsFQDN: true, os: {}, resourceClaims: [], resources: {}},
        status: {observedGeneration: 1, phase: p, conditions: [], message: m, reason: r, nominatedNodeName: n,
        hostIP: h, hostIPs: [{ip: i}], podIP: p, podIPs: [{ip: i}], startTime: t, initContainerStatuses: [],
        containerStatuses: [], qosClass: q, ephemeralContainerStatuses: [], resize: r}}""",
    "StatefulSet": """{spec: {replicas: 1, selector: {}, template: {}, volumeClaimTemplates: [], serviceName: s,
        podManagementPolicy: p, updateStrategy: {}, revisionHistoryLimit: 1, minReadySeconds: 1, ordinals: {},
        persistentVolumeClaimRetentionPolicy: {}}, status: {replicas: 1}}""",
    "ServiceImport": "{spec: {ports: [], ips: [], type: t, sessionAffinity: s, ipFamilies: []}, status: {}}",
    "ClusterProperty": "{spec: {value: v}}",
    "NodeLocator": "{spec: {podIPs: [], addresses: [], labels: {}}}",
    "PodLocator": "{spec: {addresses: [], nodeName: n, nodeLabels: {}}}",
}


@pytest.mark.parametrize("kind", RULES)
def test_no_other_field_of_the_api_is_taken_for_a_misspelling(kind: str) -> None:
    whole = {"kind": kind, **yaml.safe_load(WHOLE), **yaml.safe_load(SPECS[kind])}
    assert list(misspellings(kind, whole)) == []


def test_a_word_is_near_another_by_one_letter_its_case_or_separators_only() -> None:
    known = ("endpoints", "ip", "port")
    for word in ("endpoint", "Endpoints", "end-points", "endpionts", "endpoimts"):
        assert nearest(word, known) == "endpoints"
    assert nearest("IP", known) == "ip"
    for word in ("ips", "endpts", "a" * 100_000):
        assert nearest(word, known) == ""


@pytest.mark.parametrize("version", [["v1"], {"a": "b"}, 1, True])
@pytest.mark.parametrize("kind", ["Service", "service"])
def test_an_api_version_that_is_no_text_is_left_to_the_decoder(kind: str, version: object) -> None:
    assert misspellings(kind, {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}) == []
