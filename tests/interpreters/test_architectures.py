"""Unit tests and stories on arm64 by the image's Python: natively on such a machine, else by qemu-user, which is slow.

And the numbers of C that topodns has, in the kernel's headers of both architectures.
"""

import re
import socket
import subprocess
from pathlib import Path
from typing import Final

import pytest

from release.sbom import IMAGE_PYTHON
from tests.kubelab.debian import newest_archives
from tests.kubelab.images import WHEELS
from tests.support.emulation import MACHINES
from tests.support.interpreters import interpreter_command, why_no_interpreters
from topodns.net import mmsg, reuseport, socket_memory, sockets

ARCHITECTURE: Final = "arm64"
LIMIT: Final = 2400.0  # seconds

# What calls the kernel by structures and numbers of C, or uses a library in C. On arm64 `make test` runs all.
TESTS: Final = (
    *("tests/unit/net", "tests/unit/netlink", "tests/unit/hostnet", "tests/unit/files/test_regular.py"),
    *("tests/unit/query/test_regex.py", "tests/unit/cluster/decode/test_objects.py"),
    "tests/unit/kube/manifests/test_yaml_reader.py",
    *(f"tests/stories/test_{name}.py" for name in ("sockets", "udp", "tcp", "starting", "reload")),
)


def test_what_is_next_to_the_kernel_and_to_libraries_in_c_passes_its_tests() -> None:
    if reason := why_no_interpreters(ARCHITECTURE):
        pytest.skip(f"NOTHING OF {ARCHITECTURE} RUNS HERE: {reason}")
    try:
        command = interpreter_command(
            IMAGE_PYTHON, ["-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS], ARCHITECTURE
        )
    except (OSError, subprocess.CalledProcessError) as problem:
        pytest.skip(f"PYTHON {IMAGE_PYTHON} OF {ARCHITECTURE} CANNOT BE HAD HERE: {problem}")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout.splitlines()[-1]


# Names of which Python has none, or not in all versions.
NUMBERS: Final = {
    "asm-generic/socket.h": {
        "SO_ATTACH_REUSEPORT_CBPF": reuseport._SO_ATTACH_REUSEPORT_CBPF,
        "SO_DETACH_REUSEPORT_BPF": reuseport._SO_DETACH_REUSEPORT_BPF,
        "SO_MEMINFO": socket_memory._SO_MEMINFO,
    },
    "linux/in.h": {"IP_FREEBIND": sockets._FREEBIND[socket.AF_INET][1], "IP_PKTINFO": mmsg.IP_PKTINFO},
    "linux/in6.h": {"IPV6_FREEBIND": sockets._FREEBIND[socket.AF_INET6][1]},
}


@pytest.mark.parametrize("architecture", WHEELS)
def test_the_numbers_of_socket_options_are_those_of_the_kernels_headers(architecture: str, tmp_path: Path) -> None:
    try:
        (archive,) = newest_archives(["linux-libc-dev"], architecture)
    except (OSError, subprocess.CalledProcessError) as problem:
        pytest.skip(f"NO HEADERS OF {architecture} HERE: {problem}")
    subprocess.run(["dpkg-deb", "-x", archive, tmp_path], check=True)
    headers = tmp_path / "usr/include"
    own = headers / f"{MACHINES[architecture].name}-linux-gnu/asm/socket.h"
    assert own.read_text() == "#include <asm-generic/socket.h>\n"  # no numbers of its own
    for header, expected in NUMBERS.items():
        defined = dict(re.findall(r"^#define\s+(\w+)\s+(\d+)", (headers / header).read_text(), re.MULTILINE))
        assert {name: int(defined[name]) for name in expected} == expected
