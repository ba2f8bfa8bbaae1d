"""The unit tests by newer interpreters than Python 3.11, and that the package names each of them."""

import subprocess
import tomllib
from typing import Final

import pytest

from release.sbom import IMAGE_PYTHON
from release.source import ROOT
from tests.support.interpreters import interpreter_command, why_no_interpreters

VERSIONS: Final = (IMAGE_PYTHON, "3.14")  # Debian has had no 3.12
LIMIT: Final = 1200.0  # seconds


@pytest.mark.parametrize("version", VERSIONS)
def test_the_unit_tests_pass(version: str) -> None:
    if reason := why_no_interpreters():
        pytest.skip(f"NO OTHER PYTHON HERE: {reason}")
    try:
        command = interpreter_command(
            version, ["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "tests/unit"]
        )
    except (OSError, subprocess.CalledProcessError) as problem:
        pytest.skip(f"PYTHON {version} CANNOT BE HAD HERE: {problem}")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_package_names_the_version(version: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]
