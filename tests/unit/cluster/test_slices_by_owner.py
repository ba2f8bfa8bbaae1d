"""The slices of each Service, and which of them count."""

from dataclasses import replace

from tests.support.model_builders import endpoint, endpoint_slice
from topodns.cluster.model import EndpointSlice, ObjectKey
from topodns.cluster.slices import MOST_COUNTED, MOST_MIRRORED, MOST_MIRRORED_ENDPOINTS, OwnedSlices, SliceOwner

WEB = SliceOwner(ObjectKey("default", "web"))


def web(name: str, mirrored: bool = False, ready: bool = True) -> EndpointSlice:
    return replace(endpoint_slice("web", endpoint("10.0.0.1", ready=ready), name=name), mirrored=mirrored)


def owned(*slices: EndpointSlice) -> OwnedSlices:
    made = OwnedSlices()
    for one in slices:
        made.add(one)
    return made


def names(of: OwnedSlices) -> list[str]:
    return [one.name for one in of.counted(WEB)]


def test_mirrored_slices_count_only_where_there_is_no_other() -> None:
    real, mirrored = web("b"), web("a", mirrored=True)
    of = owned(real, mirrored)
    assert (names(of), of.counts(real), of.counts(mirrored)) == (["b"], True, False)
    of.remove(real)
    assert (names(of), of.counts(mirrored)) == (["a"], True)


def test_a_thousand_slices_of_a_service_count_the_first_by_name() -> None:
    slices = [web(f"s{number:04}") for number in range(MOST_COUNTED + 2)]
    of = owned(*reversed(slices))
    assert names(of) == [one.name for one in slices[:MOST_COUNTED]]
    of.remove(slices[0])
    assert names(of) == [one.name for one in slices[1 : MOST_COUNTED + 1]]


def test_of_mirrored_slices_so_many_count() -> None:
    slices = [web(f"s{number:03}", mirrored=True) for number in range(MOST_MIRRORED + 1)]
    of = owned(*slices)
    assert names(of) == [one.name for one in slices[:-1]]
    assert [of.counts(one) for one in slices[-2:]] == [True, False]


def test_of_large_mirrored_slices_fewer_count() -> None:
    endpoints = tuple(endpoint(f"10.{at >> 8}.{at & 255}.1") for at in range(MOST_MIRRORED_ENDPOINTS // 4))
    of = owned(*(replace(web(f"s{number}", mirrored=True), endpoints=endpoints) for number in range(6)))
    assert names(of) == ["s0", "s1", "s2", "s3"]


def test_slices_with_a_ready_endpoint_are_counted_of_mirrored_ones_only_without_others() -> None:
    mirrored, first, second = web("m", mirrored=True), web("a", ready=False), web("b")
    of = owned(mirrored)
    assert of.ready(WEB) == 1
    of.add(first)
    assert of.ready(WEB) == 0
    of.add(second)
    assert of.ready(WEB) == 1
    for one in (first, second, mirrored):
        of.remove(one)
    assert of.ready(WEB) == 0


def test_slices_of_no_service_are_left_out() -> None:
    alone = replace(web("a"), service_name="")
    of = owned(alone)
    assert of.counted(SliceOwner(ObjectKey("default", ""))) == ()
    of.remove(alone)
