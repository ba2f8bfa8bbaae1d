"""A file of frames: what is written is read, and nothing of a file that is not whole."""

import os
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodns.files.framed_file import FileKind, FrameWriter, UnusableFile, check_steps, frames, replacing
from topodns.time_slices import do_at_once

KIND = FileKind(b"frames\n", 3)
SMALL = [b"one", b"", b"three" * 20]


def written(some: list[bytes], kind: FileKind = KIND) -> bytes:
    file = BytesIO()
    writer = FrameWriter(file, kind)
    for frame in some:
        if not writer.write(frame):
            break
    writer.end()
    return file.getvalue()


def read(content: bytes, kind: FileKind = KIND) -> list[bytes]:
    file = BytesIO(content)
    do_at_once(check_steps(file, kind))
    return list(frames(file, kind))


def refusal(content: bytes, kind: FileKind = KIND) -> UnusableFile:
    with pytest.raises(UnusableFile) as refused:
        read(content, kind)
    return refused.value


@given(st.lists(st.binary(max_size=300)))
def test_frames_are_read_as_they_were_written(some: list[bytes]) -> None:
    assert read(written(some)) == some


def test_a_large_file_is_read_in_steps() -> None:
    content = written([bytes(1 << 20)] * 2)
    assert sum(1 for _ in check_steps(BytesIO(content), KIND)) > 16
    assert read(content) == [bytes(1 << 20)] * 2


@given(st.lists(st.binary(max_size=40)), st.integers(min_value=30, max_value=300))
def test_a_file_has_at_most_its_limit_of_octets_and_the_frames_before_it(some: list[bytes], limit: int) -> None:
    kind = KIND._replace(limit=limit)
    content = written(some, kind)
    kept = read(content, kind)
    assert len(content) <= limit
    assert kept == some[: len(kept)]
    assert len(kept) == len(some) or len(content) + 4 + len(some[len(kept)]) > limit


def test_a_file_over_its_limit_is_damaged() -> None:
    found = refusal(written(SMALL), KIND._replace(limit=100))
    assert (found.reason, str(found)) == ("damaged", "is damaged: it has 140 octets, expected at most 100")


def test_a_file_that_ends_anywhere_before_its_end_is_damaged() -> None:
    content = written(SMALL)
    assert {refusal(content[:end]).reason for end in range(len(content))} == {"damaged"}


def test_a_file_with_any_octet_behind_its_end_is_damaged() -> None:
    assert {refusal(written(SMALL) + bytes((more,))).reason for more in range(256)} == {"damaged"}


def test_a_file_with_any_flipped_bit_is_refused() -> None:
    content = written(SMALL)
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        at = bit // 8 - len(KIND.magic)
        assert refusal(bytes(flipped)).reason == ("foreign" if at < 0 else "version" if at < 2 else "damaged")


@given(st.binary(max_size=100))
def test_frames_of_a_file_that_is_not_whole_end_with_the_file(octets: bytes) -> None:
    """As of one that is overwritten in place while it is read."""
    found = list[bytes]()
    with suppress(UnusableFile):
        found.extend(frames(BytesIO(KIND.magic + b"\0\3" + octets), KIND))
    assert sum(map(len, found)) <= len(octets)


@pytest.mark.parametrize("version", [2, 4])
def test_another_version_is_named(version: int) -> None:
    found = refusal(written(SMALL, FileKind(KIND.magic, version)))
    assert str(found) == f"has format {version}, expected 3: another topodns wrote it"


def test_a_file_of_another_kind_is_told_from_an_empty_one() -> None:
    assert str(refusal(b"nameserver 192.0.2.1\n")) == "begins with other octets than 'frames'"
    assert str(refusal(b"")) == "is damaged: 0 octets without their checksum"


async def replace(path: Path) -> None:
    async with replacing(str(path), KIND) as file:
        file.write(b"new")


@pytest.mark.parametrize("before", [None, b"", b"fra", written(SMALL), written(SMALL)[:-1]])
async def test_a_file_of_the_kind_is_replaced_even_a_damaged_one(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "file"
    if before is not None:
        path.write_bytes(before)
    await replace(path)
    assert read(path.read_bytes()) == [b"new"]


@pytest.mark.parametrize("before", [b"x", b"nameserver 192.0.2.1\n"])
async def test_a_file_of_another_program_is_never_replaced(tmp_path: Path, before: bytes) -> None:
    path = tmp_path / "resolv.conf"
    path.write_bytes(before)
    with pytest.raises(FileExistsError, match="it begins with other octets than 'frames'"):
        await replace(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["resolv.conf"]
