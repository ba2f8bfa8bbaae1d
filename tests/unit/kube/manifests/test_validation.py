"""What an API server refuses of an object: names that are none, and values that a field cannot have."""

import pytest

from tests.support.manifest_text import SLICE, contents
from topodns.cluster.decode.objects import decode_object
from topodns.cluster.model import Service


@pytest.mark.parametrize("kind", ["Service", "Namespace"])
@pytest.mark.parametrize(
    "name", ["Upper", "under_score", "a.b", "-a", "a" * 64, "m\N{LATIN SMALL LETTER U WITH DIAERESIS}"]
)
def test_a_name_that_is_no_dns_label_is_refused(kind: str, name: str) -> None:
    (found,) = contents(f"kind: {kind}\nmetadata: {{name: {name}}}\n").skipped
    assert ": metadata.name: " in found.problem


@pytest.mark.parametrize("kind", ["Node", "Pod"])
@pytest.mark.parametrize("name", ["Upper", "under_score", "a..b", "-a", "m\N{LATIN SMALL LETTER U WITH DIAERESIS}"])
def test_the_name_of_a_node_or_pod_is_a_dns_name(kind: str, name: str) -> None:
    text = f"kind: {kind}\nmetadata: {{name: NAME}}\nstatus: {{podIP: 10.0.0.1, phase: Running}}\n"
    assert len(contents(text.replace("NAME", "eu-1a.ip-10-0-0-1")).entries) == 1
    (found,) = contents(text.replace("NAME", name)).skipped
    assert ": metadata.name: " in found.problem


@pytest.mark.parametrize(
    "name",
    ["example.com", "example.com.", "A-1.example.com", "_srv.example.com", "192.0.2.1", "xn--bcher-kva.example"],
)
def test_an_external_name_is_a_dns_name(name: str) -> None:
    text = f"kind: Service\nmetadata: {{name: a}}\nspec: {{type: ExternalName, externalName: {name}}}\n"
    (found,) = contents(text).entries
    assert [each.external_name for each in found.objects if isinstance(each, Service)] == [name]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("https://example.com/x", 'found "https://example.com/x"'),
        ("example.com:8080", 'found "example.com:8080"'),
        ("' example.com '", 'found " example.com "'),
        ("'a\\046b.example.com'", 'found "a\\\\046b.example.com"'),
        ("example..com", 'found "example..com"'),
        ("'*.example.com'", 'found "*.example.com"'),
        ("a" * 64, f'found "{"a" * 60}"'),
        ("b\u00fccher.example", 'found "b\\u00fccher.example"; IDNs have A-labels (xn--) here'),
    ],
)
def test_an_external_name_that_is_none_is_refused(name: str, problem: str) -> None:
    text = f"kind: Service\nmetadata: {{name: a}}\nspec: {{type: ExternalName, externalName: {name}}}\n"
    (found,) = contents(text).skipped
    assert found.problem.endswith(f"Service default/a: spec.externalName: expected a DNS name, {problem}")


def refused(kind: str, fields: str) -> str:
    """What the log says about an object of these fields; "" for one that is taken."""
    versions = {"EndpointSlice": "discovery.k8s.io/v1", "ServiceImport": "multicluster.x-k8s.io/v1alpha1"}
    head = f"apiVersion: {versions.get(kind, 'v1')}\nkind: {kind}\nmetadata: {{namespace: shop, name: web}}\n"
    found = contents(f"{head}{fields}\n")
    assert not found.left_out
    assert len(found.entries) + len(found.skipped) == 1
    return found.skipped[0].problem.removeprefix(f"m.yaml:1: skipped {kind} shop/web: ") if found.skipped else ""


def slice_of(endpoints: str, address_type: str = "IPv4") -> str:
    return refused("EndpointSlice", f"addressType: {address_type}\nendpoints: {endpoints}")


@pytest.mark.parametrize(
    ("address_type", "addresses", "problem"),
    [
        ("IPv4", "10.0.0.1, 10.0.010.1", ""),
        ("IPv6", "'fd00::1'", ""),
        ("FQDN", "a.example, b.example.", ""),
        (
            "IPv6",
            "'fd00::1', 10.0.0.1",
            'endpoints[0].addresses[1]: expected an address of type IPv6, found "10.0.0.1"',
        ),
        ("IPv4", "'fd00::1'", 'endpoints[0].addresses[0]: expected an address of type IPv4, found "fd00::1"'),
        ("IPv4", "10.0.0.300", 'endpoints[0].addresses[0]: expected an address of type IPv4, found "10.0.0.300"'),
        ("FQDN", "web", 'endpoints[0].addresses[0]: expected a name of address type FQDN, found "web"'),
        ("ipv4", "10.0.0.1", 'addressType: expected IPv4, IPv6 or FQDN, found "ipv4"'),
        ("", "10.0.0.1", "addressType: expected IPv4, IPv6 or FQDN, found none"),
        ("IPv4", "", "endpoints[0].addresses: expected 1 to 100, found 0"),
        ("IPv4", ",".join(["10.0.0.1"] * 101), "endpoints[0].addresses: expected 1 to 100, found 101"),
    ],
)
def test_the_addresses_of_a_slice_are_of_its_address_type(address_type: str, addresses: str, problem: str) -> None:
    assert slice_of(f"[{{addresses: [{addresses}]}}]", address_type) == problem


def test_an_address_may_be_of_loopback_as_on_one_machine() -> None:
    """An API server refuses it, but the example cluster of `config/demo` has such Pods."""
    assert slice_of("[{addresses: [127.10.1.20]}]") == ""


LABEL = "expected a DNS label in lower case (RFC 1123)"


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ("hostname: web-0", ""),
        ("hostname: null", ""),
        ("hostname: Web-0", f'endpoints[0].hostname: {LABEL}, found "Web-0"'),
        ("hostname: web.0", f'endpoints[0].hostname: {LABEL}, found "web.0"'),
        ("hostname: ''", f'endpoints[0].hostname: {LABEL}, found ""'),
        ("nodeName: ip-10-0-0-1.example", ""),
        (
            "nodeName: Node_1",
            "endpoints[0].nodeName: expected DNS labels with dots between them, in lower case (RFC 1123), "
            'found "Node_1"',
        ),
        (f"hints: {{forZones: {[{'name': f'z{at}'} for at in range(8)]}}}", ""),
        (
            f"hints: {{forZones: {[{'name': f'z{at}'} for at in range(9)]}}}",
            "endpoints[0].hints.forZones: expected at most 8, found 9",
        ),
        (
            f"deprecatedTopology: {{{', '.join(f'a{at}: b' for at in range(17))}}}",
            "endpoints[0].deprecatedTopology: expected at most 16 labels, found 17",
        ),
    ],
)
def test_the_names_of_an_endpoint_are_dns_names_and_its_lists_are_bounded(field: str, problem: str) -> None:
    assert slice_of(f"[{{addresses: [10.0.0.1], {field}}}]") == problem


@pytest.mark.parametrize(("number", "problem"), [(1000, ""), (1001, "endpoints: expected at most 1000, found 1001")])
def test_a_slice_has_at_most_1000_endpoints(number: int, problem: str) -> None:
    assert slice_of(f"[{', '.join(['{addresses: [10.0.0.1]}'] * number)}]") == problem


PORT_FAULTS = [
    ("{port: 80, protocol: tpc}", '[0].protocol: expected TCP, UDP or SCTP, found "tpc"'),
    ("{port: 80, protocol: tcp}", '[0].protocol: expected TCP, UDP or SCTP, found "tcp"'),
    ("{port: 80, name: Http}", f'[0].name: {LABEL}, found "Http"'),
    ("{port: 80, name: a.b}", f'[0].name: {LABEL}, found "a.b"'),
    ("{port: 80, name: -a}", f'[0].name: {LABEL}, found "-a"'),
]
GOOD_PORTS = [
    "{port: 80}",
    "{port: 80, protocol: SCTP, name: a-port-name-of-more-than-fifteen-characters}",
    "{port: 80, name: '1'}",
    "{port: 53, name: dns, protocol: UDP}, {port: 53, name: dns-tcp, protocol: null}",
]


@pytest.mark.parametrize(
    ("kind", "prefix"), [("Service", "spec: {clusterIP: None, ports: [%s]}"), ("EndpointSlice", "")]
)
@pytest.mark.parametrize(("ports", "problem"), [*PORT_FAULTS, *((each, "") for each in GOOD_PORTS)])
def test_a_port_has_a_protocol_of_the_api_and_a_dns_label(kind: str, prefix: str, ports: str, problem: str) -> None:
    """IANA_SVC_NAME, of at most 15 characters with a letter, is the rule of a container's ports alone."""
    fields = prefix % ports if prefix else f"addressType: IPv4\nports: [{ports}]"
    where = "spec.ports" if kind == "Service" else "ports"
    assert refused(kind, fields) == (problem and f"{where}{problem}")


@pytest.mark.parametrize(
    ("ports", "problem"),
    [
        ("{port: 0}", "[0].port: expected 1 to 65535, found 0"),
        ("{port: 65536}", "[0].port: expected 1 to 65535, found 65536"),
        ("{name: http}", "[0].port: expected 1 to 65535, found none"),
        ("{port: 80}, {port: 81, name: b}", "[0].name: expected a name, as there are several ports, found none"),
        ("{port: 80, name: a}, {port: 81, name: a}", '[1].name: expected a name of its own, found "a" again'),
        ("{port: 80, name: a}, {port: 80, name: b}", "[1]: expected a port of its own, found 80 of TCP again"),
        ("{port: 80, name: a}, {port: 80, name: b, protocol: UDP}", ""),
        ("{port: 80, protocol: ''}", ""),
        (
            "{port: 0, name: A}, {port: 0, protocol: x}",
            f'[0].name: {LABEL}, found "A"; spec.ports[0].port: expected 1 to 65535, found 0; '
            "spec.ports[1].name: expected a name, as there are several ports, found none; and 2 more",
        ),
    ],
)
def test_the_ports_of_a_service_have_numbers_and_differ(ports: str, problem: str) -> None:
    assert refused("Service", f"spec: {{clusterIP: None, ports: [{ports}]}}") == (problem and f"spec.ports{problem}")


@pytest.mark.parametrize(
    ("ports", "problem"),
    [
        ("{}", ""),
        ("{port: 0}", ""),
        ("{port: 80, name: a}, {port: 80, name: b}", ""),
        ("{port: 80}, {port: 81, name: b}", ""),
        ("{port: 80}, {port: 81}", 'ports[1].name: expected a name of its own, found "" again'),
        ("{port: 80, name: a}, {port: 81, name: a}", 'ports[1].name: expected a name of its own, found "a" again'),
        ("{port: 80, protocol: ''}", 'ports[0].protocol: expected TCP, UDP or SCTP, found ""'),
    ],
)
def test_the_ports_of_a_slice_differ_in_name_and_need_no_number(ports: str, problem: str) -> None:
    assert refused("EndpointSlice", f"addressType: IPv4\nports: [{ports}]") == problem


def test_a_slice_has_at_most_20000_ports_since_kubernetes_1_21() -> None:
    fields = "addressType: IPv4\nports: [%s]"
    for number, problem in ((101, ""), (20001, "ports: expected at most 20000, found 20001")):
        assert refused("EndpointSlice", fields % ", ".join(f"{{name: p{at}}}" for at in range(number))) == problem


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("type: NodePort, clusterIP: 10.96.0.1", ""),
        ("type: '', clusterIP: 10.96.0.1", ""),
        ("type: Clusterip", 'spec.type: expected ClusterIP, NodePort, LoadBalancer or ExternalName, found "Clusterip"'),
        (
            "type: LoadBalancer, clusterIP: None",
            'spec.clusterIP: expected an address at the type LoadBalancer, found "None"',
        ),
        (
            "type: ExternalName, externalName: a.example, clusterIP: 10.96.0.1",
            'spec.clusterIP: expected none at the type ExternalName, found "10.96.0.1"',
        ),
        ("type: ExternalName, externalName: a.example, clusterIP: ''", ""),
        ("clusterIP: None, clusterIPs: [None]", ""),
        ("clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1, 'fd00::1']", ""),
        ("clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1, web]", 'spec.clusterIPs[1]: expected an address, found "web"'),
        (
            "clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1, 10.96.0.2]",
            'spec.clusterIPs: expected at most one address of each family, found "10.96.0.1", "10.96.0.2"',
        ),
        (
            "clusterIP: 10.96.0.2, clusterIPs: [10.96.0.1]",
            'spec.clusterIP: expected the first of spec.clusterIPs, "10.96.0.1", found "10.96.0.2"',
        ),
        ("clusterIPs: [None]", 'spec.clusterIP: expected the first of spec.clusterIPs, "None", found none'),
    ],
)
def test_the_type_and_the_addresses_of_a_service_belong_together(spec: str, problem: str) -> None:
    assert refused("Service", f"spec: {{{spec}, ports: [{{port: 80}}]}}") == problem


@pytest.mark.parametrize("text", ["web", "none", "10.96.0.300", "10.96.0.1/24"])
def test_a_cluster_ip_is_an_address_or_none(text: str) -> None:
    found = refused("Service", f"spec: {{clusterIP: {text}}}")
    assert found == f'spec.clusterIP: expected an address or None, found "{text}"'


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("spec: {type: Headless, ports: []}", ""),
        ("spec: {type: ClusterSetIP, ports: [{port: 80}], ips: [10.96.0.1]}", ""),
        ("status: {}", ""),
        ("spec: {type: Headles, ports: []}", 'spec.type: expected ClusterSetIP or Headless, found "Headles"'),
        ("spec: {ports: []}", "spec.type: expected ClusterSetIP or Headless, found none"),
        ("spec: {type: Headless}", "spec.ports: expected a list, found none"),
        ("spec: {type: Headless, ports: [{name: a}]}", "spec.ports[0].port: expected 1 to 65535, found none"),
        ("spec: {type: ClusterSetIP, ports: [], ips: [a, b, c]}", "spec.ips: expected at most 2, found 3"),
    ],
)
def test_a_service_import_fits_the_schema_of_its_kind(fields: str, problem: str) -> None:
    apart = fields.replace("[a, b, c]", "[10.0.0.1, 10.0.0.2, 10.0.0.3]")
    assert refused("ServiceImport", apart) == problem


@pytest.mark.parametrize(
    ("port", "remark"),
    [
        ("{port: 80, name: http, protocol: TCP}", ()),
        ("{port: 0}", "port: expected 1 to 65535, found 0"),
        ("{port: 80, protocol: tpc}", 'protocol: expected TCP, UDP or SCTP, found "tpc"'),
        ("{port: 80, name: Http}", f'name: {LABEL}, found "Http"'),
    ],
)
def test_a_port_of_a_service_import_that_an_api_server_takes_all_the_same_is_a_remark(port: str, remark: str) -> None:
    """Its schema has the rule as a description only."""
    head = "kind: ServiceImport\nmetadata: {namespace: shop, name: web}\n"
    found = contents(f"{head}spec: {{type: Headless, ports: [{port}]}}\n")
    assert found.remarks == ((f"m.yaml:1: ServiceImport shop/web: spec.ports[0].{remark}",) if remark else ())
    assert len(found.entries) == 1


@pytest.mark.parametrize(
    ("subset", "problem"),
    [
        ("addresses: [{ip: 10.0.0.1, hostname: ''}], ports: [{port: 80}]", ""),
        ("addresses: [{ip: web}]", 'subsets[0].addresses[0].ip: expected an address, found "web"'),
        ("notReadyAddresses: [{}]", "subsets[0].notReadyAddresses[0].ip: expected an address, found none"),
        ("addresses: [{ip: 10.0.0.1, hostname: A}]", f'subsets[0].addresses[0].hostname: {LABEL}, found "A"'),
        ("addresses: [{ip: 10.0.0.1}], ports: [{port: 0}]", "subsets[0].ports[0].port: expected 1 to 65535, found 0"),
    ],
)
def test_the_subsets_of_endpoints_have_addresses_and_ports(subset: str, problem: str) -> None:
    good = "{addresses: [{ip: 10.0.0.9}]}"
    text = f"kind: Endpoints\nmetadata: {{namespace: shop, name: web}}\nsubsets: [{{{subset}}}, {good}]\n"
    found = contents(text)
    shown = [each.problem for each in found.skipped]
    assert shown == ([f"m.yaml:1: skipped Endpoints shop/web: {problem}"] if problem else [])


def test_an_object_of_a_watch_is_not_checked_again() -> None:
    """An API server has validated it, maybe by the rules of an older version."""
    endpoint = {"addresses": ["10.0.0.1"], "hostname": "Web-0"}
    found = {"metadata": {"name": "web-1", "namespace": "shop"}, "endpoints": [endpoint], "ports": [{"protocol": "x"}]}
    assert len(decode_object("EndpointSlice", found)) == 1


def test_the_names_of_a_slice_of_address_type_fqdn_are_no_addresses() -> None:
    found = contents((SLICE % ("db-1", "db", "a.example")).replace("addressType: IPv4", "addressType: FQDN"))
    assert (found.left_out, found.remarks) == ((), ())
