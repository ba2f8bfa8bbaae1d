"""A file of frames: what is written is read, and nothing of a file that is not whole."""

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodns.files.framed_file import FileKind, ForeignFile, FrameWriter, UnusableFile, read_frames
from topodns.time_slices import do_at_once

KIND = FileKind(b"frames\n", 3)
SMALL = [b"one", b"", b"three" * 20]


def written(frames: list[bytes], kind: FileKind = KIND, limit: int = 1 << 30) -> bytes:
    file = BytesIO()
    writer = FrameWriter(file, kind, limit)
    for frame in frames:
        if not writer.write(frame):
            break
    writer.end()
    return file.getvalue()


def read(content: bytes) -> list[bytes]:
    return [bytes(frame) for frame in do_at_once(read_frames(content, KIND))]


@given(st.lists(st.binary(max_size=300)))
def test_frames_are_read_as_they_were_written(frames: list[bytes]) -> None:
    assert read(written(frames)) == frames


def test_a_large_file_is_read_in_steps() -> None:
    content = written([bytes(1 << 20)] * 2)
    assert sum(1 for _ in read_frames(content, KIND)) > 8
    assert read(content) == [bytes(1 << 20)] * 2


@given(st.lists(st.binary(max_size=40)), st.integers(min_value=30, max_value=300))
def test_a_file_has_at_most_its_limit_of_octets_and_the_frames_before_it(frames: list[bytes], limit: int) -> None:
    content = written(frames, limit=limit)
    kept = read(content)
    assert len(content) <= limit
    assert kept == frames[: len(kept)]
    assert len(kept) == len(frames) or len(content) + 4 + len(frames[len(kept)]) > limit


def test_a_file_that_ends_anywhere_before_its_end_is_unusable() -> None:
    content = written(SMALL)
    for end in range(len(content)):
        with pytest.raises(UnusableFile):
            read(content[:end])


def test_a_file_with_any_octet_behind_its_end_is_unusable() -> None:
    for more in range(256):
        with pytest.raises(UnusableFile):
            read(written(SMALL) + bytes((more,)))


def test_a_file_with_any_flipped_bit_is_unusable_or_of_another_program() -> None:
    content = written(SMALL)
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ForeignFile if bit < 8 * len(KIND.magic) else UnusableFile):
            read(bytes(flipped))


@pytest.mark.parametrize("version", [2, 4])
def test_another_version_is_named(version: int) -> None:
    with pytest.raises(UnusableFile, match=f"it is of version {version}, expected 3"):
        read(written(SMALL, FileKind(KIND.magic, version)))


def test_a_file_of_another_kind_is_told_from_an_empty_one() -> None:
    with pytest.raises(ForeignFile, match="it begins with other octets"):
        read(b"nameserver 192.0.2.1\n")
    with pytest.raises(UnusableFile, match="it ends after 0 octets"):
        read(b"")
