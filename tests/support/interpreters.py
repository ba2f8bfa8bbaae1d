"""Other interpreters than the machine's, each in a root of its own: the images', a newer one of Debian's development
release, and those of another architecture.

A root has the interpreter, its C library and a shell, and beside it the wheels that requirements-dev.lock pins for that
version. Both are kept in the cache; packages are not installed on the machine.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from release.image import SUITE
from release.sbom import IMAGE_PYTHON
from release.source import ROOT
from tests.kubelab.apt import DEVELOPMENT, KEYRING, apt_get, machine_architecture
from tests.kubelab.cache import CACHE, filling, key_of, making, say
from tests.kubelab.images import WHEELS
from tests.support.emulation import emulated, why_not_emulated

LOCK: Final = ROOT / "requirements-dev.lock"

# What every interpreter needs; a program for the tests that write little shell scripts.
_COMMON: Final = (
    *("libc6", "libgcc-s1", "libstdc++6", "zlib1g", "libzstd1", "libexpat1", "libffi8", "libbz2-1.0"),
    *("liblzma5", "libsqlite3-0", "libuuid1", "libssl3t64", "libmpdec4"),
    *("dash", "coreutils", "libacl1", "libattr1", "libselinux1", "libpcre2-8-0", "libgmp10", "libcap2", "libsystemd0"),
)
_OF_VERSION: Final = ("python{}", "python{}-minimal", "libpython{}-minimal", "libpython{}-stdlib")

# Arguments: root, wheels, this repository, interpreter, then the interpreter's own.
_ENTER: Final = r"""
mount --bind "$3" "$1/repository"
mount -o remount,bind,ro "$1/repository"
libraries="$1/usr/local/lib/${4##*/}/dist-packages"  # where Debian's Python finds them, also in processes of tests
mkdir -p "$libraries"
mount --bind "$2" "$libraries"
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/tmp"
root="$1"; python="$4"; shift 4
exec env -i ${QEMU_CPU:+"QEMU_CPU=$QEMU_CPU"} PATH=/usr/sbin:/usr/bin HOME=/tmp LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis PYTHONPATH=/repository \
    chroot "$root" "$python" -c \
    'import os, sys; os.chdir("/repository"); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])' "$@"
"""


def interpreter_command(version: str, arguments: Sequence[str], architecture: str = "") -> list[str]:
    """The words that run the interpreter `version` ("3.14") in this repository, which it cannot change (root).

    Its packages and wheels are downloaded where the cache has none, for this machine's architecture by default. Raises
    OSError or CalledProcessError.
    """
    architecture = architecture or machine_architecture()
    with filling():
        root, wheels = interpreter_root(version, architecture), wheels_of(version, architecture)
    enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-e", "-c", _ENTER, "sh"]
    command = [*enter, str(root), str(wheels), str(ROOT), f"/usr/bin/python{version}", *arguments]
    return emulated(architecture, command)


def interpreter_root(version: str, architecture: str = "") -> Path:
    """The root of the interpreter `version`, downloaded where the cache has none. Raises as `interpreter_command`."""
    suite = SUITE if version == IMAGE_PYTHON else DEVELOPMENT
    packages = [*_COMMON, *(each.format(version) for each in _OF_VERSION)]
    architecture = architecture or machine_architecture()
    kept = CACHE / "interpreters" / f"python{version}-{suite}-{architecture}-{key_of(*packages)}"
    if kept.exists():
        return kept
    say(f"downloading Python {version} of Debian's {suite} for {architecture}")
    with making(kept) as root:
        for folder in (
            "usr/bin",
            "usr/sbin",
            "usr/lib",
            "usr/lib64",
            "repository",
            "dev",
            "proc",
            "tmp",
            "etc",
        ):
            (root / folder).mkdir(parents=True, exist_ok=True)
        for folder in ("bin", "sbin", "lib", "lib64"):
            (root / folder).symlink_to(f"usr/{folder}")
        (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        downloads = root / "downloads"
        downloads.mkdir()
        subprocess.run([*apt_get(architecture, suite), "download", *packages], cwd=downloads, check=True)
        for archive in sorted(downloads.glob("*.deb")):
            # By tar, which keeps our links from /lib to /usr/lib where a package has a folder of that name.
            content = subprocess.run(["dpkg-deb", "--fsys-tarfile", archive], check=True, capture_output=True).stdout
            subprocess.run(["tar", "--extract", "--keep-directory-symlink", "-C", root], input=content, check=True)
        shutil.rmtree(downloads)
    return kept


def wheels_of(version: str, architecture: str = "") -> Path:
    """The folder of the locked wheels for it, downloaded where the cache has none. Raises as `interpreter_command`."""
    architecture = architecture or machine_architecture()
    kept = CACHE / "interpreters" / f"wheels-{version}-{architecture}-{key_of(LOCK.read_bytes())}"
    if kept.exists():
        return kept
    say(f"downloading the wheels of {LOCK.name} for Python {version} on {architecture}")
    tags = [
        f"--abi=cp{version.replace('.', '')}",
        "--abi=abi3",
        "--abi=none",
        *(f"--platform={each}" for each in WHEELS[architecture]),
    ]
    with making(kept) as folder:
        options = ["--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:", f"--python-version={version}"]
        pip = [sys.executable, "-m", "pip", "install", *options, "--implementation=cp", *tags]
        subprocess.run([*pip, "--target", folder, "-r", LOCK], check=True, env={**os.environ, "PIP_NO_INPUT": "1"})
    return kept


def why_no_interpreters(architecture: str = "") -> str:
    """The reason why other interpreters cannot run here, of this machine's architecture by default; "" if they can."""
    if os.geteuid() != 0:
        return "mounting their root takes root"
    missing = [name for name in ("apt-get", "dpkg-deb", "tar", "unshare", "chroot") if not shutil.which(name)]
    if missing:
        return f"it takes {' and '.join(missing)}"
    if not KEYRING.exists():
        return f"it takes Debian's keys ({KEYRING})"
    trial = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, text=True, check=False
    )
    if trial.returncode:
        return f"no namespaces: {trial.stderr.strip()}"
    return why_not_emulated(architecture or machine_architecture())
