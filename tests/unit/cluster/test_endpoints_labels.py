"""Endpoints by their labels: an address that is read from a label is the one whose label is written like that."""

from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st

from topodns.cluster.endpoints import LabelIndex, endpoint_label, identity_of, undashed
from topodns.cluster.model import Endpoint

OCTETS = st.sampled_from((0, 0, 0, 1, 9, 16, 255)) | st.integers(0, 255)
FOUR = st.lists(OCTETS, min_size=4, max_size=4).map(bytes)
SIX = st.lists(OCTETS, min_size=16, max_size=16).map(bytes)
HOSTNAMES = st.sampled_from(("", "", "db-0", "DB-0", "1-2-3-4", "0-0-0-0", "--1", "db-0.a", "."))
POD_NAMES = st.sampled_from(("", "db-0", "p" * 63, "p" * 64, "etcd-a.example", "p."))


def endpoints(addresses: st.SearchStrategy[bytes]) -> st.SearchStrategy[list[Endpoint]]:
    one = st.builds(
        lambda *values: Endpoint(values[0], hostname=values[1], pod_name=values[2], other_target=values[3]),
        *(addresses, HOSTNAMES, POD_NAMES, POD_NAMES),
    )
    return st.lists(one, max_size=12, unique_by=identity_of)


@given(FOUR | SIX)
def test_a_label_is_the_shortest_text_of_an_address_with_dashes(address: bytes) -> None:
    if address[:12] == bytes(10) + b"\xff\xff":
        return  # an IPv4 address in the middle, which differs between versions of Python
    text = str(ip_address(address)).replace(".", "-").replace(":", "-")
    assert endpoint_label(Endpoint(address), False) == (text + "0" if text.endswith("-") else text)


@given(st.booleans(), endpoints(FOUR) | endpoints(SIX))
def test_a_label_has_no_dots_and_at_most_63_octets(pod_names: bool, some: list[Endpoint]) -> None:
    labels = [endpoint_label(each, pod_names) for each in some]
    assert [label for label in labels if "." in label or not 0 < len(label) < 64] == []


@given(
    st.booleans(), endpoints(FOUR) | endpoints(SIX), st.sampled_from(("", "1-2-3-4", "01-2-3-4", "0--1", "--01", "-"))
)
def test_the_index_finds_by_each_label_all_that_have_it(pod_names: bool, some: list[Endpoint], strange: str) -> None:
    index = LabelIndex(some, pod_names)
    labels = [endpoint_label(each, pod_names).lower() for each in some]
    for label in (*labels, strange, "db-0", "10-0-0-1", "fd00--1"):
        assert list(index.members(label, undashed(label))) == [
            each for each, its in zip(some, labels, strict=True) if its == label
        ]
