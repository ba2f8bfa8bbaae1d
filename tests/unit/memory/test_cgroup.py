"""The memory limit of a process, from files as the kernel has them."""

from pathlib import Path

import pytest

from topodns.memory.cgroup import memory_limit


@pytest.mark.parametrize(
    ("own", "files", "limit"),
    [
        pytest.param("0::/\n", {"memory.max": "536870912\n"}, 536870912, id="version 2, in a container"),
        pytest.param("0::/../../a\n", {"memory.max": "536870912\n"}, 536870912, id="with the path of the host"),
        pytest.param("0::/\n", {"memory.max": "max\n"}, None, id="none"),
        pytest.param("0::/\n", {}, None, id="no controller"),
        pytest.param(
            "0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": "1000000\n"}, 1000000, id="of the one above"
        ),
        pytest.param("0::/a/b\n", {"a/b/memory.max": "500000\n", "a/memory.max": "1000000\n"}, 500000, id="the least"),
        pytest.param(
            "4:cpu,memory:/a\n0::/\n", {"memory/a/memory.limit_in_bytes": "536870912\n"}, 536870912, id="version 1"
        ),
        pytest.param(
            "4:memory:/kubepods/x\n", {"memory/memory.limit_in_bytes": "536870912\n"}, 536870912, id="in a container"
        ),
        pytest.param(
            "4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None, id="version 1, none"
        ),
    ],
)
def test_the_limit_is_that_of_the_cgroup_and_those_above(
    tmp_path: Path, own: str, files: dict[str, str], limit: int | None
) -> None:
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        file = tmp_path / "mount" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert memory_limit(str(tmp_path / "own"), str(tmp_path / "mount")) == limit


def test_without_cgroups_there_is_no_limit(tmp_path: Path) -> None:
    assert memory_limit(str(tmp_path / "own"), str(tmp_path)) is None
