"""What an API server refuses of an object: a name that is none, and addresses of another family than the slice's."""

import pytest

from tests.support.manifest_text import SLICE, contents
from tests.support.model_builders import packed
from topodns.cluster.model import EndpointSlice, Service


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


@pytest.mark.parametrize(
    ("address_type", "addresses", "problem", "kept"),
    [
        ("IPv6", "10.0.0.1, 'fd00::1'", "10.0.0.1: no IPv6 address, which is the addressType", ["fd00::1"]),
        ("IPv4", "'fd00::1', 10.0.0.1", "fd00::1: no IPv4 address, which is the addressType", ["10.0.0.1"]),
        ("IPv6", "10.0.0.1, 10.0.0.2", "10.0.0.1: no IPv6 address, which is the addressType; and 1 more", []),
        ("ipv4", "10.0.0.1", "all endpoints: addressType 'ipv4', expected IPv4, IPv6 or FQDN", []),
    ],
)
def test_addresses_of_another_family_than_the_address_type_are_left_out(
    address_type: str, addresses: str, problem: str, kept: list[str]
) -> None:
    """An API server refuses the whole slice."""
    found = contents((SLICE % ("db-1", "db", addresses)).replace("addressType: IPv4", f"addressType: {address_type}"))
    assert found.left_out == (f"m.yaml:1: EndpointSlice shop/db-1: left out {problem}",)
    (one,) = found.entries[0].objects
    assert isinstance(one, EndpointSlice)
    assert [each.address for each in one.endpoints] == list(map(packed, kept))


def test_the_names_of_a_slice_of_address_type_fqdn_are_no_addresses() -> None:
    found = contents((SLICE % ("db-1", "db", "a.example")).replace("addressType: IPv4", "addressType: FQDN"))
    assert (found.left_out, found.remarks) == ((), ())
