import pytest

from tests.support.server import block
from topodns.dns.message import RRType
from topodns.dns.names import parse_name
from topodns.resolve.blocks import BlockTable

ALL = (".", "local.", "cluster.local.", "east.cluster.local.", "10.in-addr.arpa.")
NO_ROOT = ("local.", "cluster.local.")


def origin_for(origins: tuple[str, ...], question: str) -> str | None:
    """The origin whose block is asked about `NAME TYPE`."""
    name, qtype = question.split()
    found = BlockTable([block(origin) for origin in origins]).match(parse_name(name), RRType[qtype])
    return found.label if found is not None else None


@pytest.mark.parametrize(
    ("origins", "question", "origin"),
    [
        (ALL, "svc1.default.svc.cluster.local. A", "cluster.local."),
        (ALL, "cluster.local. SOA", "cluster.local."),
        (ALL, "west.cluster.local. A", "cluster.local."),
        (ALL, "x.east.cluster.local. A", "east.cluster.local."),
        (ALL, "xcluster.local. A", "local."),
        (ALL, r"x\.cluster.local. A", "local."),
        (ALL, "1.0.0.10.in-addr.arpa. PTR", "10.in-addr.arpa."),
        (ALL, "1.0.0.110.in-addr.arpa. PTR", "."),
        (ALL, "example. A", "."),
        (ALL, ". NS", "."),
        (NO_ROOT, "www.local. A", "local."),
        (NO_ROOT, "example. A", None),
        (NO_ROOT, ". NS", None),
        ((), "example. A", None),
    ],
)
def test_the_longest_origin_above_a_name_has_its_block(
    origins: tuple[str, ...], question: str, origin: str | None
) -> None:
    assert origin_for(origins, question) == origin


@pytest.mark.parametrize(
    ("origins", "question", "origin"),
    [
        (ALL, "cluster.local. DS", "local."),
        (ALL, "east.cluster.local. DS", "local."),  # as CoreDNS: the highest of all, not the next one up
        (ALL, "local. DS", "local."),
        (ALL, "example. DS", "."),
        (("cluster.local.",), "cluster.local. DS", "cluster.local."),
        (("cluster.local.",), "example. DS", None),
    ],
)
def test_ds_is_asked_of_the_parents_side(origins: tuple[str, ...], question: str, origin: str | None) -> None:
    assert origin_for(origins, question) == origin
