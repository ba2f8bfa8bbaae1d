"""Programs of another architecture on this machine: Debian's qemu-user runs them, in a user namespace whose own
binfmt_misc (Linux 6.7) hands them to it. So nothing is registered, or installed, on the machine.

`python -m tests.support.emulation ARCHITECTURE WORDS...` runs a command in such a namespace (root). It is the same user
as outside, all users exist in it, and programs of the machine run as before.

qemu-user 7.2 has no sockets of NETLINK_NETFILTER and NETLINK_SOCK_DIAG: nothing of nftables, nor of a node's other
instances, can be tested by it.
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from release.source import ROOT
from tests.kubelab.apt import machine_architecture
from tests.kubelab.cache import filling
from tests.kubelab.debian import RELEASE
from tests.kubelab.programs import PROGRAMS, place


class Machine(NamedTuple):
    """An architecture. `elf`: e_machine of its ELF files (elf.h)."""

    name: str  # that the kernel has for it, and qemu
    elf: int
    loader: str  # the dynamic linker of glibc


MACHINES: Final = {
    "amd64": Machine("x86_64", 62, "/lib64/ld-linux-x86-64.so.2"),
    "arm64": Machine("aarch64", 183, "/lib/ld-linux-aarch64.so.1"),
}

# All that the default has, but signatures of pointers (PAC) by hash: Debian 13's programs make one in each call of a
# function, and by the architecture's own algorithm Python would take 15 times as long.
_CPU: Final = "QEMU_CPU=max,pauth-impdef=on"
_HANDLERS: Final = Path("/proc/sys/fs/binfmt_misc")
_NEW_USERS_AND_MOUNTS: Final = 0x10000000 | 0x00020000  # CLONE_NEWUSER, CLONE_NEWNS of linux/sched.h
_ALL_IDS: Final = "0 0 4294967295"  # inside, outside, how many: user_namespaces(7)


def emulated(architecture: str, words: Sequence[str]) -> list[str]:
    """The words of a command that may run programs of this architecture: the same if it is the machine's.

    The emulator is downloaded where the cache has none, and reads QEMU_CPU in the environment of each process. Raises
    OSError or CalledProcessError.
    """
    if architecture == machine_architecture():
        return list(words)
    emulator = _emulator(architecture)
    if not emulator.exists():
        with filling():
            place("qemu-user-static", {f"usr/bin/{emulator.name}": emulator})
    return ["env", _CPU, f"PYTHONPATH={ROOT}", sys.executable, "-m", "tests.support.emulation", architecture, *words]


def why_not_emulated(architecture: str) -> str:
    """The reason why programs of this architecture cannot run here; "" if they can."""
    if architecture == machine_architecture():
        return ""
    if os.geteuid() != 0:
        return "mapping all users takes root"
    try:
        command = emulated(architecture, ["true"])
        trial = subprocess.run(command, capture_output=True, text=True, check=False)
    except (OSError, subprocess.CalledProcessError) as problem:
        return f"no qemu-user: {problem}"
    return f"no emulation: {trial.stderr.strip()}" if trial.returncode else ""


def _emulator(architecture: str) -> Path:
    return PROGRAMS / RELEASE / f"qemu-{MACHINES[architecture].name}-static"


def _enter() -> None:
    """Make this process one of a new user namespace with all users. Raises OSError."""
    ours, theirs = os.pipe()
    helper = os.fork()
    if helper == 0:  # stays outside, where it may map other users than its own
        os.read(ours, 1)
        for which in ("uid_map", "gid_map"):
            Path(f"/proc/{os.getppid()}/{which}").write_text(_ALL_IDS)
        os._exit(0)
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.unshare(_NEW_USERS_AND_MOUNTS) and ctypes.get_errno()
    os.write(theirs, b"\0")
    os.waitpid(helper, 0)
    if failed:
        raise OSError(failed, f"no user namespace: {os.strerror(failed)}")


def _register(machine: Machine, emulator: Path) -> None:
    """Have the kernel start ELF files of this machine by the emulator (Documentation/admin-guide/binfmt-misc.rst).

    Flags: open the emulator now, as it is not in the root that is entered later; use the file's own privileges.
    """
    mount = ["mount", "-t", "binfmt_misc", "binfmt_misc", str(_HANDLERS)]
    subprocess.run(mount, check=True, capture_output=True)
    # Class, byte order, version; any ABI; then type, an executable or a library, and machine.
    magic = b"\x7fELF\2\1\1" + bytes(9) + b"\2\0" + machine.elf.to_bytes(2, "little")
    mask = b"\xff" * 7 + b"\0" + b"\xff" * 8 + b"\xfe" + b"\xff" * 3
    escaped = ["".join(f"\\x{octet:02x}" for octet in text) for text in (magic, mask)]
    (_HANDLERS / "register").write_text(f":{machine.name}:M::{escaped[0]}:{escaped[1]}:{emulator}:OCF")


def main() -> None:
    architecture, *words = sys.argv[1:]
    try:
        _enter()
        _register(MACHINES[architecture], _emulator(architecture))
    except (OSError, subprocess.CalledProcessError) as problem:
        sys.exit(f"no binfmt_misc of its own here (Linux 6.7): {problem}")
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()
