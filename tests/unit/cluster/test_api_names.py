"""Names of Nodes, keys and values of labels are read by the rules of apimachinery."""

import pytest

from topodns.cluster.api_names import is_label_key, is_label_value, is_subdomain


@pytest.mark.parametrize("text", ["a", "node-1", "worker-1.example.org", "10-0-0-1", "a" * 253, f"{'a' * 64}.b"])
def test_a_dns_1123_subdomain(text: str) -> None:
    assert is_subdomain(text)


@pytest.mark.parametrize(
    "text", ["", "A", "-a", "a-", "a.", ".a", "a..b", "a.-b", "a_b", "a\n", "\xe4", "\ud800", "a" * 254, "a b"]
)
def test_any_other_text_is_no_dns_1123_subdomain(text: str) -> None:
    assert not is_subdomain(text)


@pytest.mark.parametrize("text", ["zone", "topology.kubernetes.io/zone", "a/B_c.d", "9", "a" * 63, f"{'a' * 253}/b"])
def test_a_label_key(text: str) -> None:
    assert is_label_key(text)


@pytest.mark.parametrize(
    "text", ["", "/zone", "a/", "a/b/c", "A/zone", "-a/zone", "_zone", "zone-", "zone\n", "a" * 64, f"{'a' * 254}/b"]
)
def test_any_other_text_is_no_label_key(text: str) -> None:
    assert not is_label_key(text)


@pytest.mark.parametrize(("text", "expected"), [("", True), ("v1.2_3-A", True), ("a/b", False), ("-", False)])
def test_a_label_value_may_be_empty_and_has_no_prefix(text: str, expected: bool) -> None:
    assert is_label_value(text) is expected
