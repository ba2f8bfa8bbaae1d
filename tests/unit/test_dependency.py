"""Dependencies of answers: two are equal only if they name the same data."""

from topodns.dependency import EVERYTHING, address_fact, namespace_fact, node_fact, service_fact


def test_facts_of_different_kinds_with_one_name_differ() -> None:
    facts = [EVERYTHING, namespace_fact("a"), node_fact("a"), service_fact("a", "a"), service_fact("", "a")]
    assert len({*facts, address_fact(b"a")}) == 6


def test_a_fact_is_found_by_its_name() -> None:
    assert service_fact("shop", "web") == service_fact("shop", "web") != service_fact("web", "shop")
    assert address_fact(bytes(4)) == address_fact(bytes(4)) != address_fact(bytes(16))
