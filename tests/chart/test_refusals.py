"""Values that make no sense end `helm template` with a sentence with the value expected and the value found."""

from typing import Any

import pytest

from tests.support.chart.helm import Refused, Values, rendered, rendered_text

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
    "an unknown mode": ({"mode": "instead"}, "value must be one of 'replace', 'beside'"),
    "a number that is none": ({"replicaCount": "two"}, "at '/replicaCount': got string, want integer"),
    "an address that is none": ({"service": {"clusterIP": "kube-dns"}}, "at '/service/clusterIP'"),
    **{
        f"{text} for an address": ({"service": {"clusterIP": text}}, "at '/service/clusterIP'")
        for text in ("10.96.0.300", "10.96.0", "10.96.0.10/24", "10.96.0.010", ":", "fd00::12345", "fd00::1.2.3.256")
    },
    "three addresses": (
        {"service": {"clusterIPs": ["10.0.0.1", "10.0.0.2", "10.0.0.3"]}},
        "at '/service/clusterIPs': maxItems: got 3, want 2",
    ),
    "addresses that contradict each other": (
        {"service": {"clusterIP": "10.96.0.11", "clusterIPs": ["10.96.0.10", "fd00::a"]}},
        "service.clusterIP: expected the first of service.clusterIPs, 10.96.0.10, found 10.96.0.11",
    ),
    "a scaled DaemonSet": (
        {"deployment": {"kind": "DaemonSet"}, "hpa": {"enabled": True}},
        "deployment.kind: expected Deployment with hpa.enabled or autoscaler.enabled, found DaemonSet",
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
    "a listener of gRPC": (
        {"servers": [{"zones": [{"zone": ".", "scheme": "grpc://"}], "plugins": PROBES}]},
        "servers[0]: expected the scheme dns://, tls:// or none, found grpc://",
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
        "nodeCache.updateStrategy: expected one of maxSurge and maxUnavailable above 0, found neither",
    ),
    "node caches replaced in both ways": (
        {"nodeCache": {**CACHE, "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}}}},
        "nodeCache.updateStrategy: expected one of maxSurge and maxUnavailable above 0, found both",
    ),
    "node caches replaced in both ways, by what the API takes for nothing": (
        {"nodeCache": {**CACHE, "updateStrategy": {"rollingUpdate": {"maxUnavailable": None}}}},
        "nodeCache.updateStrategy: expected one of maxSurge and maxUnavailable above 0, found both",
    ),
    "servers that could never be replaced": (
        {"rollingUpdate": {"maxSurge": "0%"}},
        "rollingUpdate: expected maxSurge or maxUnavailable above 0, found neither",
    ),
    "two addresses of one family for the node cache": (
        {"nodeCache": {**CACHE, "localDns": ["169.254.20.10", "169.254.20.11"]}},
        "nodeCache.localDns: expected at most one address of each family, found 169.254.20.10 and 169.254.20.11",
    ),
    "a cluster DNS that the node cache would not take": (
        {"service": {"clusterIPs": ["10.96.0.10", "fd00::a"]}, "nodeCache": {**CACHE, "dnsServer": ["10.96.0.11"]}},
        "nodeCache.dnsServer: expected an address of the release's Service among them, 10.96.0.10,fd00::a, found 10.96",
    ),
    "a cluster DNS whose address is neither given nor found": (
        {},
        "service.clusterIP: expected the address of the cluster DNS, which is clusterDNS of the kubelets (kubeadm: 10",
    ),
    "a cluster DNS without an address": (
        {"service": {"clusterIP": "None"}},
        "service.clusterIP: expected an address for the cluster DNS, which pods ask by it, found None",
    ),
    "a node cache for a Service without an address": (
        {"mode": "beside", "service": {"clusterIP": "None"}, "nodeCache": {"enabled": True}},
        "nodeCache.intercept: expected the address of the cluster DNS in nodeCache.dnsServer or service.clusterIP,",
    ),
    "more replicas at least than at most, by the cluster's size": (
        {"autoscaler": {"enabled": True, "min": 5, "max": 4}},
        "autoscaler.min: expected at most max, 4, found 5",
    ),
    "nothing at all": (
        {"deployment": {"enabled": False}},
        "deployment.enabled, nodeCache.enabled and locator.enabled: expected one of them at least, found none",
    ),
    "a plugin that closes its block": ({"servers": [block(".", 53, {"name": "log\n}"})]}, "does not match pattern"),
    "a zone that opens a block": ({"servers": [block(". {")]}, "at '/servers/0/zones/0/zone'"),
    "a policy that denies and warns": (
        {"admissionPolicy": {"actions": ["Warn", "Deny"]}},
        "admissionPolicy.actions: expected Deny or Warn, found both",
    ),
    "a variable that the chart sets": (
        {"env": [{"name": "NODE_NAME", "value": "a"}]},
        "env: expected other variables than the chart's own, found NODE_NAME",
    ),
    "a variable that the chart sets for the node cache": (
        {"nodeCache": {**CACHE, "env": [{"name": "LOCAL_ADDRESSES", "value": "a"}]}},
        "nodeCache.env: expected other variables than the chart's own, found LOCAL_ADDRESSES",
    ),
    "a Service that the node cache has as well": (
        {"service": {"name": "node-local-dns"}, "nodeCache": CACHE},
        "service.name: expected another name than the node cache's, found node-local-dns",
    ),
    "the cluster DNS as what the node cache forwards to": (
        {"nodeCache": {**CACHE, "upstreamService": {"name": "kube-dns"}}},
        "nodeCache.upstreamService.name: expected a name of its own, found kube-dns, which is that of another Service",
    ),
    "a Service that the node cache makes to forward to": (
        {"mode": "beside", "fullnameOverride": "kube-dns-upstream", "nodeCache": CACHE},
        "nodeCache.upstreamService.name: expected a name of its own, found kube-dns-upstream, which is that of another",
    ),
    "a Service with a name too long": (
        {"service": {"name": "a" * 64}},
        "service.name: expected a DNS label of at most 63 characters, a letter first, found aaa",
    ),
    "a Service whose name begins with a digit": (
        {"mode": "beside", "fullnameOverride": "2nd"},
        "service.name: expected a DNS label of at most 63 characters, a letter first, found 2nd",
    ),
    "Pods that the Service would not find": (
        {"mode": "beside", "deployment": {"selector": {"matchLabels": {"app.kubernetes.io/name": "dns"}}}},
        "deployment.selector: expected Pods that the Service finds by app.kubernetes.io/name: topodns, found dns:",
    ),
}

NAMED = ["fullnameOverride", "deployment.name", "serviceAccount.name"]
FOUND_BY = ["k8s-app", "app.kubernetes.io/name", "app.kubernetes.io/instance"]
NO_ADDRESSES = ["0.0.0.0", "127.0.0.53", "224.0.0.251", "255.255.255.255", "::", "::1", "0:0:0:0:0:0:0:1", "ff02::fb"]


def nested(path: str, value: object) -> dict[str, Any]:
    for key in reversed(path.split(".")):
        value = {key: value}
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("case", REFUSED)
def test_senseless_values_are_refused_with_a_sentence(case: str) -> None:
    values, sentence = REFUSED[case]
    with pytest.raises(Refused) as refusal:
        rendered_text(values)
    assert sentence in str(refusal.value)


def test_the_cluster_dns_needs_no_address_where_the_release_does_not_make_its_service() -> None:
    node_cache = {"enabled": True, "dnsServer": ["10.96.0.10"]}
    assert rendered_text({"service": {"create": False}})
    assert rendered_text({"deployment": {"enabled": False}, "nodeCache": node_cache})
    assert rendered_text({"service": {"clusterIPs": ["10.96.0.10"]}})


def test_a_cluster_without_admission_policies_is_refused_with_the_value_to_set() -> None:
    with pytest.raises(Refused, match=r"expected Kubernetes 1.30 or newer, found v1.29.0: set it to false"):
        rendered({}, "--kube-version", "v1.29.0")
    assert rendered({"admissionPolicy": {"enabled": False}}, "--kube-version", "v1.29.0")


def test_a_cluster_whose_schemas_know_no_ip_addresses_is_refused_the_locators() -> None:
    values = {"locator": {"enabled": True}}
    with pytest.raises(Refused, match=r"locator.crds: expected Kubernetes 1.31 or newer, found v1.30.0"):
        rendered(values, "--kube-version", "v1.30.0")
    assert rendered({"locator": {"enabled": True, "crds": False}}, "--kube-version", "v1.30.0")


def test_zones_that_views_share_are_none_too_many() -> None:
    view = {"name": "view", "parameters": "pods", "configBlock": "expr incidr(client_ip(), '10.0.0.0/8')"}
    assert rendered({"servers": [block(".", 53, view), block(".")]})
    assert rendered({"servers": [block("."), block(".", 53, view)]})


@pytest.mark.parametrize("path", NAMED)
def test_names_are_dns_labels_and_not_the_node_caches(path: str) -> None:
    with pytest.raises(Refused, match=f"{path}: expected a DNS label of at most 63 characters, found Topo_DNS"):
        rendered(nested(path, "Topo_DNS"))
    with pytest.raises(Refused, match=r"[a-zA-Z.]+: expected another name than the node cache's, found node-local-dns"):
        rendered({**nested(path, "node-local-dns"), "nodeCache": CACHE})
    assert rendered(nested(path, "node-local-dns"))


@pytest.mark.parametrize("key", FOUND_BY)
@pytest.mark.parametrize("where", ["podLabels", "customLabels", "nodeCache.podLabels"])
def test_no_label_takes_pods_from_their_service(where: str, key: str) -> None:
    path = where.split(".")
    with pytest.raises(Refused) as refusal:
        rendered(nested(where, {key: "dns"}))
    assert f"{where}: expected other labels than the chart's own, found {key}, which Pods" in str(refusal.value)
    assert rendered(nested(path[0], nested(path[1], {"team": "net"}) if path[1:] else {"team": "net"}))


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_the_node_cache_has_an_address_that_pods_can_ask(address: str) -> None:
    with pytest.raises(Refused) as refusal:
        rendered({"nodeCache": {**CACHE, "localDns": [address]}})
    assert f"nodeCache.localDns: expected an address that pods can ask, found {address}" in str(refusal.value)


@pytest.mark.parametrize("address", ["169.254.20.10", "10.0.0.1", "fd00::1", "2001:db8::", "fff::1"])
def test_the_node_cache_may_have_any_other(address: str) -> None:
    assert rendered({"nodeCache": {**CACHE, "localDns": [address]}})


def test_a_node_cache_may_take_the_cluster_dns_and_forward_to_a_server_beside_it() -> None:
    beside = {"mode": "beside", "service": {"clusterIP": "10.96.0.77"}}
    assert rendered({**beside, "nodeCache": CACHE})
    assert rendered({**beside, "nodeCache": {**CACHE, "upstreamService": {"create": False, "name": "topodns"}}})


def test_a_node_cache_that_takes_no_address_may_forward_to_the_cluster_dns_itself() -> None:
    upstream = {"create": False, "name": "kube-dns"}
    assert rendered({"nodeCache": {"enabled": True, "intercept": False, "upstreamService": upstream}})
    with pytest.raises(Refused, match=r"nodeCache\.upstreamService\.name: expected a name of its own, found kube-dns"):
        rendered({"nodeCache": {**CACHE, "upstreamService": upstream}})


def test_pods_may_be_replaced_as_the_user_says() -> None:
    assert rendered({"nodeCache": {**CACHE, "updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}})
    assert rendered({"nodeCache": {**CACHE, "updateStrategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}})
    assert rendered({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "10%"}})


def test_a_zone_may_come_from_the_environment() -> None:
    assert rendered({"servers": [block("{$DOMAIN}"), block("a.{%DOMAIN%}")]})


def test_without_a_cluster_a_change_of_mode_is_rendered() -> None:
    """The objects of a cluster decide (tests/cluster/test_chart.py)."""
    assert rendered({"mode": "beside"}, "--is-upgrade")


@pytest.mark.parametrize("text", ["10.96.0.10", "255.255.255.255", "fd00::a", "1:2:3:4:5:6:7:8", "::ffff:10.0.0.1"])
def test_an_address_of_either_family_is_taken(text: str) -> None:
    (service,) = (each for each in rendered({"service": {"clusterIP": text}}) if each["kind"] == "Service")
    assert service["spec"]["clusterIP"] == text
