"""The file of a snapshot: read as it was written, or refused as a whole with a clear line."""

import io
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import endpoint, endpoint_slice, namespace, service
from tests.support.random_clusters import objects
from tests.support.snapshots import snapshot_octets
from topodns.cluster import packed_objects
from topodns.cluster.model import ClusterObject, kind_of
from topodns.files.framed_file import UnusableFile
from topodns.kube.snapshot import format as snapshot_format
from topodns.kube.snapshot.format import KIND, Head, Part, Section, head_steps, part_steps
from topodns.time_slices import do_at_once

HEAD = Head("0a1b", 1_700_000_000.5, 1_700_000_000, ("Pod",))
SHOP: tuple[Part, ...] = (
    Section("Namespace", "17", ""),
    [namespace("shop")],
    Section("Service", "19", "labelSelector=app=web"),
    [service("web", "shop", cluster_ips=("10.96.0.7",)), service("db", "shop")],
    Section("EndpointSlice", "", ""),
    [endpoint_slice("db", endpoint("10.0.0.1", node="n1"), namespace="shop")],
)


def written(head: Head = HEAD, parts: Sequence[Part] = SHOP) -> bytes:
    return snapshot_octets(head, parts)


def read(octets: bytes) -> tuple[Head, list[Part]]:
    file = io.BytesIO(octets)
    head = do_at_once(head_steps(file))
    return head, list(part_steps(file))


def test_a_snapshot_reads_back_as_it_was_written() -> None:
    head, parts = read(written())
    assert head._replace(layout="") == HEAD
    assert parts == list(SHOP)


@given(st.lists(objects, max_size=8))
def test_any_objects_read_back(values: list[ClusterObject]) -> None:
    parts: list[Part] = []
    for value in values:
        parts += [Section(kind_of(value), str(value.version), ""), [value]]
    assert read(written(parts=parts))[1] == parts


def test_an_empty_cluster_reads_back() -> None:
    assert read(written(parts=()))[1] == []


def test_each_prefix_of_a_snapshot_is_refused() -> None:
    whole = written()
    for size in range(len(whole)):
        with pytest.raises(UnusableFile):
            read(whole[:size])


def test_a_snapshot_with_octets_behind_it_is_refused() -> None:
    with pytest.raises(UnusableFile, match="is damaged"):
        read(written() + b"\0")


def test_each_of_a_thousand_flipped_bits_is_noticed() -> None:
    whole, rng = written(), Random(7)
    for _ in range(1000):
        flipped = bytearray(whole)
        flipped[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        with pytest.raises(UnusableFile):
            read(bytes(flipped))


@given(st.binary(max_size=300))
def test_any_octets_are_refused_and_cause_no_other_error(octets: bytes) -> None:
    for file in (octets, KIND.magic + octets, written()[:40] + octets):
        with pytest.raises(UnusableFile):
            read(file)


def test_a_file_of_something_else_is_said_to_be_none() -> None:
    with pytest.raises(UnusableFile, match="begins with other octets than 'topodns snapshot'") as refused:
        read(b'{"kind": "List"}\n')
    assert refused.value.reason == "foreign"


def test_a_newer_format_is_named() -> None:
    newer = written().replace(b"\n\0\1", b"\n\0\2", 1)
    with pytest.raises(UnusableFile, match="has format 2, expected 1: another topodns wrote it") as refused:
        read(newer)
    assert refused.value.reason == "version"


def test_objects_with_other_fields_are_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_format, "layout", lambda: "other")
    of_another = written(HEAD._replace(program="9.9.9"))
    monkeypatch.undo()
    with pytest.raises(UnusableFile, match=r"has objects as topodns 9\.9\.9 writes them") as refused:
        read(of_another)
    assert refused.value.reason == "version"


def test_the_layout_depends_on_each_field_of_each_object(monkeypatch: pytest.MonkeyPatch) -> None:
    before = packed_objects.layout()
    packed_objects.layout.cache_clear()
    assert packed_objects.layout() == before
    packed_objects.layout.cache_clear()
    monkeypatch.setitem(packed_objects.KINDS["EndpointSlice"].__annotations__, "colour", str)
    assert packed_objects.layout() != before
    packed_objects.layout.cache_clear()


def test_a_whole_file_with_octets_that_are_no_objects_is_refused() -> None:
    """As of a program with a bug: the checksum is right."""
    unreadable = written(parts=[Section("Pod", "1", ""), [namespace("shop")]])
    with pytest.raises(UnusableFile, match="is damaged"):
        read(unreadable)
