"""Debian packages without installing them: downloaded by apt, unpacked, made into the layers that images begin with."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.kubelab.apt import apt_get, machine_architecture
from tests.kubelab.cache import CACHE, key_of, say
from tests.kubelab.layers import LAYERS, Layer, write_layer

RELEASE: Final = "debian-12"

_PACKAGES: Final[Mapping[str, str]] = {
    "python": """base-files netbase media-types tzdata ca-certificates busybox-static
        libc6 libgcc-s1 libcrypt1 zlib1g libssl3 libexpat1 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libncursesw6
        libtinfo6 libreadline8 libuuid1 libdb5.3 libnsl2 libtirpc3 libgssapi-krb5-2 libkrb5-3 libk5crypto3
        libkrb5support0 libcom-err2 libkeyutils1 python3 python3-minimal python3.11 python3.11-minimal
        libpython3.11-minimal libpython3.11-stdlib""",
    "nettools": """nftables libnftables1 libnftnl11 libmnl0 libgmp10 libjansson4 libedit2 libbsd0 libmd0 libxtables12
        iptables libip4tc2 libip6tc2 libnetfilter-conntrack3 libnfnetlink0 conntrack
        iproute2 libbpf1 libelf1 libcap2 libpcre2-8-0 libselinux1""",
    "dnstools": """bind9-dnsutils bind9-host bind9-libs dnsperf libedit2 libbsd0 libmd0 libfstrm0 libidn2-0
        libunistring2 libjemalloc2 libjson-c5 libldns3 liblmdb0 libmaxminddb0 libnghttp2-14 libprotobuf-c1 libstdc++6
        libuv1 libxml2 libicu72""",
    "shelltools": """dash bash coreutils libattr1 libc-bin tar libacl1 libselinux1 netcat-openbsd wget curl libcurl4
        libpcre2-8-0 libbrotli1 libgmp10 libgnutls30 libhogweed6 libldap-2.5-0 libnettle8 libp11-kit0 libpsl5 librtmp1
        libsasl2-2 libsasl2-modules-db libssh2-1 libtasn1-6 libzstd1""",
}
UNUSED: Final = ("doc", "man", "locale", "lintian", "bug", "info", "bash-completion")

DEBIAN_LAYERS: Final = tuple(_PACKAGES)


def planned_layer(name: str) -> Layer:
    """The same layer as `debian_layer`, made or not."""
    return Layer(LAYERS / f"{name}-{RELEASE}-{key_of(*_PACKAGES[name].split())}.tar")


def debian_layer(name: str) -> Layer:
    """The layer `python` (Python 3.11 and busybox), `nettools` (nft, iptables, ip, conntrack), on top of `python`
    `dnstools` (dig, dnsperf), or on top of both `shelltools`, made where missing.

    `shelltools` has programs in place of busybox's: dash as `sh`, which unlike busybox's prefers what is in PATH, and
    bash, coreutils, nc, wget, curl, tar, getent.
    """
    layer = planned_layer(name)
    if layer.made:
        return layer
    with unpacked(_PACKAGES[name].split()) as root:
        say(f"making layer {name}")
        for unused in UNUSED:
            shutil.rmtree(root / "usr/share" / unused, ignore_errors=True)
        if name == "python":
            _finish_root(root)
        if name == "shelltools":
            (root / "usr/bin/nc").symlink_to("/bin/nc.openbsd")  # by the package's script
        write_layer(layer, [(root, "/")])
    return layer


@contextmanager
def unpacked(packages: Sequence[str]) -> Iterator[Path]:
    """A folder with the files of these packages. Their dependencies are the caller's affair."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=CACHE, prefix="unpack-") as root:
        for archive in _archives(packages):
            subprocess.run(["dpkg-deb", "-x", archive, root], check=True)
        yield Path(root)


def _archives(packages: Sequence[str]) -> list[Path]:
    folder = _downloads()
    missing = [package for package in packages if not any(folder.glob(f"{package}_*.deb"))]
    _download(missing, folder)
    return [sorted(folder.glob(f"{package}_*.deb"))[0] for package in packages]


def newest_archives(packages: Sequence[str], architecture: str = "", suite: str = "") -> list[Path]:
    """As _archives, but those that apt would install now: those in the cache may be older than a security fix.

    `architecture` and `suite`: by default this machine's. Raises OSError or CalledProcessError.
    """
    command = [*apt_get(architecture, suite), "download", "--print-uris", *packages]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = {name.partition("_")[0]: name for name in (line.split()[1] for line in listed.splitlines())}
    folder = _downloads(architecture, suite)
    missing = [package for package in packages if not (folder / found[package]).exists()]
    _download(missing, folder, architecture, suite)
    return [folder / found[package] for package in packages]


def _downloads(architecture: str = "", suite: str = "") -> Path:
    """The folder of an architecture's and a suite's packages. They are not together with the machine's own, which
    `_archives` finds by the name alone.
    """
    other = "" if architecture == machine_architecture() else architecture
    folder = CACHE.joinpath("debs", *filter(None, [suite, other]))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _download(packages: Sequence[str], folder: Path, architecture: str = "", suite: str = "") -> None:
    if packages:
        say(f"downloading {' '.join(packages)}")
        subprocess.run([*apt_get(architecture, suite), "download", *packages], cwd=folder, check=True)


def _finish_root(root: Path) -> None:
    """The effects of package scripts: users, name switch, busybox's links, compiled Python."""
    for folder in ("tmp", "proc", "sys", "dev", "run", "root", "app"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc/passwd").write_text(
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
    )
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    _link_busybox(root)
    compile_python(root, root / "usr/lib/python3.11")


def _link_busybox(root: Path) -> None:
    listing = subprocess.run([root / "bin/busybox", "--list-full"], check=True, capture_output=True, text=True)
    for path in listing.stdout.split():
        link = root / path
        if not os.path.lexists(link):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to("/bin/busybox")


def compile_python(root: Path, folder: Path, python: Sequence[str | Path] = ()) -> None:
    """Bytecode that holds whatever the files' times, the same each time and for each architecture.

    `python`: the words that run the interpreter for which it is; raises CalledProcessError where they fail. By default
    this machine's, if that is 3.11 as in these layers: without bytecode pods start slower.
    """
    own = [sys.executable] if sys.version_info[:2] == (3, 11) else []
    if command := [*(python or own)]:
        command += ["-m", "compileall", "-qq", "--invalidation-mode", "unchecked-hash", "-s", root, "-p", "/", folder]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}  # by which sets among the constants are ordered
        subprocess.run(command, check=bool(python), env=environment)
