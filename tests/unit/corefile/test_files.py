"""Files that a Corefile names: their text, and the reason where there is none."""

from pathlib import Path

import pytest

from topodns.corefile.errors import ConfigError
from topodns.corefile.files import MAX_TEXT, load_corefile, read_text, unreadable


def test_the_text_of_a_file_is_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "Corefile"
    path.write_text("# é\n", encoding="utf-8")
    assert load_corefile(str(path)) == "# é\n"
    path.write_text("errors\n", encoding="utf-16")
    with pytest.raises(ConfigError) as refused:
        load_corefile(str(path))
    assert str(refused.value) == f"{path}: cannot be read: found UTF-16 or UTF-32, expected UTF-8"


def test_a_file_longer_than_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "Corefile"
    path.write_bytes(b"#" * MAX_TEXT)
    assert len(read_text(str(path))) == MAX_TEXT
    path.write_bytes(b"#" * (MAX_TEXT + 1))
    with pytest.raises(ValueError, match=f"^longer than {MAX_TEXT} octets$"):
        read_text(str(path))


def test_a_path_that_cannot_be_read_has_the_reason_of_the_operating_system(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    assert unreadable(missing) == f"cannot read '{missing}': No such file or directory"
    assert unreadable(str(tmp_path)) is None
