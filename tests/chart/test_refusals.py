"""Values that make no sense end `helm template` with a sentence that says what was expected and what was found."""

from typing import Any

import pytest

from tests.support.chart.helm import Refused, Values, rendered

CACHE: dict[str, Any] = {"enabled": True, "dnsServer": ["10.96.0.10"]}
PROBES = [{"name": "health"}, {"name": "ready"}]


def block(zone: str, port: object = 53, *plugins: Values, **more: object) -> dict[str, Any]:
    return {"zones": [{"zone": zone}], "port": port, "plugins": [*PROBES, *plugins], **more}


REFUSED: dict[str, tuple[Values, str]] = {
    "an unknown key": ({"replicas": 3}, "additional properties 'replicas' not allowed"),
    "an unknown key further down": ({"service": {"ip": "10.96.0.10"}}, "at '/service': additional properties 'ip'"),
    "an unknown key of a server block": (
        {"servers": [{"plugins": PROBES, "zone": "."}]},
        "at '/servers/0': additional properties 'zone'",
    ),
    "a key of CoreDNS's chart that is spelt otherwise here": (
        {"isClusterService": False},
        "additional properties 'isClusterService' not allowed",
    ),
    "an unknown mode": ({"mode": "instead"}, "value must be one of 'replace', 'beside'"),
    "a number that is none": ({"replicaCount": "two"}, "at '/replicaCount': got string, want integer"),
    "an address that is none": ({"service": {"clusterIP": "kube-dns"}}, "at '/service/clusterIP'"),
    "three addresses": (
        {"service": {"clusterIPs": ["10.0.0.1", "10.0.0.2", "10.0.0.3"]}},
        "at '/service/clusterIPs': maxItems: got 3, want 2",
    ),
    "addresses that contradict each other": (
        {"service": {"clusterIP": "10.96.0.11", "clusterIPs": ["10.96.0.10", "fd00::a"]}},
        "service.clusterIP: expected the first of service.clusterIPs, 10.96.0.10, found 10.96.0.11",
    ),
    "no server block": ({"servers": []}, "servers: expected at least one server block, found none"),
    "a server block without plugins": ({"servers": [{"plugins": []}]}, "at '/servers/0/plugins': minItems"),
    "two zones alike": (
        {"servers": [block("."), block("Example.com"), block("example.com.")]},
        "servers[2]: expected each zone once for a port, found example.com. on port 53 in servers[1] as well",
    ),
    "two zones alike in one block": (
        {"servers": [{"zones": [{"zone": "."}, {}], "plugins": PROBES}]},
        "servers[0]: expected each zone once for a port, found . on port 53 in servers[0] as well",
    ),
    "an encrypted listener": (
        {"servers": [{"zones": [{"zone": ".", "scheme": "tls://"}], "plugins": PROBES}]},
        "expected the scheme dns:// or none, found tls://: topodns has no encrypted listeners",
    ),
    "DNS on the port of health": (
        {"servers": [block(".", 8080)]},
        "servers: expected a port of its own for health, found 8080, which DNS of servers[0] has",
    ),
    "metrics on the port of ready": (
        {"servers": [block(".", 53, {"name": "prometheus", "parameters": ":8181"})]},
        "servers: expected a port of its own for prometheus, found 8181, which ready has",
    ),
    "two ports behind one of the Service": (
        {"servers": [block(".", 53), block(".", 5353, servicePort=53)]},
        "servers: expected each servicePort once, found 53 for ports 53 and 5353",
    ),
    "a liveness probe that nobody answers": (
        {"servers": [{"plugins": [{"name": "ready"}]}]},
        "livenessProbe.enabled: expected the plugin health in one of servers, found it in none",
    ),
    "a readiness probe that nobody answers": (
        {"servers": [{"plugins": [{"name": "health"}]}]},
        "readinessProbe.enabled: expected the plugin ready in one of servers, found it in none",
    ),
    "two files of one name": (
        {"zoneFiles": [{"filename": "Corefile", "contents": ""}]},
        "zoneFiles: expected each filename once, found Corefile again",
    ),
    "two who count the replicas": (
        {"hpa": {"enabled": True}, "autoscaler": {"enabled": True}},
        "hpa.enabled and autoscaler.enabled: expected one of them at most, found both",
    ),
    "more replicas at least than at most": (
        {"hpa": {"enabled": True, "minReplicas": 5, "maxReplicas": 4}},
        "hpa.minReplicas: expected at most maxReplicas, 4, found 5",
    ),
    "a budget of both kinds": (
        {"podDisruptionBudget": {"minAvailable": 1, "maxUnavailable": 1}},
        "podDisruptionBudget: expected minAvailable or maxUnavailable, found both",
    ),
    "a resolver of the pod's own that is none": (
        {"deployment": {"dnsPolicy": "None"}},
        "deployment.dnsPolicy None: expected nameservers in deployment.dnsConfig, found none",
    ),
    "a node cache without an address": (
        {"nodeCache": {**CACHE, "localDns": []}},
        "nodeCache.localDns: expected an address for the node cache to listen on, such as 169.254.20.10, found none",
    ),
    "a node cache that nobody would ask": (
        {"nodeCache": {"enabled": True}},
        "nodeCache.intercept: expected the address of the cluster DNS in nodeCache.dnsServer or service.clusterIP,",
    ),
    "a node cache under the cluster DNS's address alone": (
        {"nodeCache": {**CACHE, "localDns": ["10.96.0.10"]}},
        "nodeCache.localDns: expected an address of its own, found 10.96.0.10, which is the cluster DNS",
    ),
    "two ports of the node cache alike": (
        {"nodeCache": {**CACHE, "ports": {"ready": 8080}}},
        "nodeCache.ports.ready: expected a port of its own, found 8080, which health has",
    ),
    "a port of the node cache that DNS has": (
        {"nodeCache": {**CACHE, "ports": {"metrics": 53}}},
        "nodeCache.ports.metrics: expected a port of its own, found 53, which DNS has",
    ),
    "node caches that could never be replaced": (
        {"nodeCache": {**CACHE, "updateStrategy": {"rollingUpdate": {"maxSurge": 0}}}},
        "nodeCache.updateStrategy: expected maxSurge or maxUnavailable above 0, found neither",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_senseless_values_are_refused_with_a_sentence(case: str) -> None:
    values, sentence = REFUSED[case]
    with pytest.raises(Refused) as refusal:
        rendered(values)
    assert sentence in str(refusal.value)


def test_a_cluster_without_admission_policies_is_told_what_to_set() -> None:
    with pytest.raises(Refused, match=r"expected Kubernetes 1.30 or newer, found v1.29.0: set it to false"):
        rendered({}, "--kube-version", "v1.29.0")
    assert rendered({"admissionPolicy": {"enabled": False}}, "--kube-version", "v1.29.0")


def test_zones_that_views_share_are_none_too_many() -> None:
    view = {"name": "view", "parameters": "pods", "configBlock": "expr incidr(client_ip(), '10.0.0.0/8')"}
    assert rendered({"servers": [block("."), block(".", 53, view)]})
