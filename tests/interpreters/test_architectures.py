"""Unit tests on arm64 by the image's Python: natively on such a machine, else by qemu-user, which is slow."""

import subprocess
from typing import Final

import pytest

from tests.support.interpreters import IMAGES, interpreter_command, why_no_interpreters

ARCHITECTURE: Final = "arm64"
LIMIT: Final = 2400.0  # seconds

# What calls the kernel by structures and numbers of C, or uses a library in C. On arm64 `make test-unit` runs all.
TESTS: Final = (
    *("tests/unit/net", "tests/unit/netlink", "tests/unit/hostnet", "tests/unit/files/test_regular.py"),
    *("tests/unit/query/test_regex.py", "tests/unit/cluster/decode/test_objects.py"),
    "tests/unit/kube/manifests/test_yaml_reader.py",
)


def test_the_unit_tests_of_what_is_next_to_kernel_and_libraries_in_c_pass() -> None:
    if reason := why_no_interpreters(ARCHITECTURE):
        pytest.skip(f"NOTHING OF {ARCHITECTURE} RUNS HERE: {reason}")
    try:
        command = interpreter_command(IMAGES, ["-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS], ARCHITECTURE)
    except (OSError, subprocess.CalledProcessError) as problem:
        pytest.skip(f"PYTHON {IMAGES} OF {ARCHITECTURE} CANNOT BE HAD HERE: {problem}")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout.splitlines()[-1]
