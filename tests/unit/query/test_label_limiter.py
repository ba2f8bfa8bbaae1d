"""Label values of metrics, and their limit."""

import pytest

from tests.support.model_builders import packed
from topodns.cluster.model import ObjectKey
from topodns.query.label_limiter import MAX_NAMED, OTHERS, LabelLimiter, LabelLimiters


def test_the_first_hundred_are_named_and_the_others_are_others() -> None:
    roster: LabelLimiter[str] = LabelLimiter(str)
    names = [roster.name(f"shop/{number}") for number in range(MAX_NAMED + 2)]
    assert names == [*(f"shop/{number}" for number in range(100)), OTHERS, OTHERS]
    assert roster.name("shop/7") == "shop/7"


def test_a_limit_of_its_own_counts_in_place_of_a_hundred() -> None:
    roster: LabelLimiter[str] = LabelLimiter(str, 2)
    assert [roster.name(name) for name in ("a", "b", "c", "a")] == ["a", "b", OTHERS, "a"]


@pytest.mark.parametrize(
    ("address", "prefix"),
    [
        ("10.240.3.77", "10.240.3.0/24"),
        ("10.240.3.255", "10.240.3.0/24"),
        ("2001:db8:1:2fff:3::4", "2001:db8:1:2f00::/56"),
        ("fd00::1", "fd00::/56"),
    ],
)
def test_of_a_source_only_the_prefix_is_exposed(address: str, prefix: str) -> None:
    assert LabelLimiters().prefix(packed(address)) == prefix


def test_services_and_prefixes_do_not_take_each_other_s_places() -> None:
    limiters = LabelLimiters()
    for number in range(MAX_NAMED + 1):
        limiters.prefix(bytes((10, 0, number, 1)))
    assert limiters.prefix(packed("10.9.9.9")) == OTHERS
    assert limiters.service(ObjectKey("shop", "cache")) == "shop/cache"


def test_prefixes_are_compared_as_octets() -> None:
    limiters = LabelLimiters()
    assert limiters.named_prefix(packed("10.240.3.77")) == bytes((10, 240, 3))
    assert limiters.named_prefix(packed("fd00::1")) == packed("fd00::")[:7]
    for number in range(MAX_NAMED):
        limiters.prefix(bytes((10, 0, number, 1)))
    assert limiters.named_prefix(packed("10.9.9.9")) is None
    assert limiters.named_prefix(packed("10.240.3.1")) == bytes((10, 240, 3))
