"""The container images, for amd64 and arm64: what is in them, and how they are made where no registry can be reached.

topodns is for Pods. topodns-tools has the package kubernetes too, which reads kubeconfigs, for use outside of a Pod.
Dockerfile says the same for docker and buildah; tests/release holds the two equal.
"""

import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from release.distributions import build_wheel
from release.lock import read_lock
from release.sbom import IMAGE_LOCK, IMAGE_PYTHON, LOCK
from release.source import DIST, ROOT, VERSION, created, revision
from tests.kubelab import debian, images, layers
from tests.kubelab.apt import machine_architecture
from tests.kubelab.cache import CACHE, filling, key_of, making, say
from tests.kubelab.debian import UNUSED, compile_python, newest_archives
from tests.kubelab.images import WHEELS, Image, install_requirements, write_image, write_index
from tests.kubelab.layers import LAYERS, Layer, write_layer
from tests.support.emulation import MACHINES

NAME: Final = f"topodns:{VERSION}"
TOOLS: Final = f"topodns-tools:{VERSION}"
SUITE: Final = "trixie"  # Debian 13, whatever the machine has: apt has lists of this suite's own
USER: Final = "65532:65532"
HOME: Final = "/opt/topodns"  # an environment of its own, whose interpreter alone may have port 53
PYTHON: Final = f"{HOME}/bin/python3"
LIBRARIES: Final = f"{HOME}/lib/python{IMAGE_PYTHON}/site-packages"
# The second: `python3` alone is the same without the capability, for who has none in the bounding set.
ENVIRONMENT: Final = ("PYTHONDONTWRITEBYTECODE=1", f"PYTHONPATH={LIBRARIES}")
COMMANDS: Final = {"topodns": "main", "node-cache": "node_cache"}  # functions of topodns.cli.main
DEMO: Final = ("config/demo", "/demo")  # the example of `make run`: where it is here, and in the image
LINKS: Final = {"/topodns": "topodns", "/coredns": "topodns", "/node-cache": "node-cache"}
# Permitted and effective CAP_NET_BIND_SERVICE (bit 10), revision 2: struct vfs_cap_data of linux/capability.h.
NET_BIND_SERVICE: Final = bytes.fromhex("01000002 00040000 00000000 00000000 00000000")

# By what apt is asked for in the Dockerfile: that, and what it depends on that is used. No shell is among it.
PACKAGES: Final[Mapping[str, str]] = {
    "ca-certificates": "",
    "python3": f"""base-files netbase media-types tzdata libc6 libgcc-s1 libstdc++6 zlib1g libzstd1 libssl3t64 libexpat1
        libffi8 libbz2-1.0 liblzma5 libmpdec4 libsqlite3-0 libuuid1 python3-minimal python{IMAGE_PYTHON}
        python{IMAGE_PYTHON}-minimal libpython{IMAGE_PYTHON}-minimal libpython{IMAGE_PYTHON}-stdlib""",
    "iptables": "libxtables12 libip4tc2 libip6tc2 libnetfilter-conntrack3 libnfnetlink0 libmnl0 libnftnl11",
    "nftables": "libnftables1 libnftnl11 libmnl0 libgmp10 libjansson4 libedit2 libbsd0 libmd0 libtinfo6 libxtables12",
}
BASE: Final = ("python3", "ca-certificates")  # what a base image with Python has already
# What a package would have update-alternatives do.
ALTERNATIVES: Final = ("iptables", "iptables-restore", "iptables-save")
# Modules of Python's own for which nobody needs the libraries.
LEFT_OUT: Final = ("_curses", "_curses_panel", "_dbm", "readline")

LABELS: Final = {
    "org.opencontainers.image.title": "topodns",
    "org.opencontainers.image.description": "Cluster DNS that knows where the asking pod runs",
    "org.opencontainers.image.licenses": "Apache-2.0",
}


def labels() -> dict[str, str]:
    """Those of pre-defined annotation keys (OCI image spec, annotations.md)."""
    prefix = "org.opencontainers.image"
    made_of = {f"{prefix}.version": VERSION, f"{prefix}.revision": revision(), f"{prefix}.created": created()}
    return LABELS | made_of


def assemble(out: Path, name: str = NAME, lock: Path = IMAGE_LOCK, architecture: str = "") -> None:
    """Write the archive, the same octets for the same files, lock, packages of Debian, and time.

    `architecture`: a key of WHEELS, by default this machine's.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    with _workplace() as folder:
        write_image(out, _image(name, lock, architecture or machine_architecture(), folder))


def assemble_index(out: Path, name: str = NAME, lock: Path = IMAGE_LOCK) -> None:
    """Write the archive of the image for all architectures; the same octets as of `assemble`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with _workplace() as folder:
        write_index(out, [_image(name, lock, architecture, folder / architecture) for architecture in WHEELS])


@contextmanager
def _workplace() -> Iterator[Path]:
    """A temporary folder, and a umask under which all users may read new files."""
    CACHE.mkdir(parents=True, exist_ok=True)
    before = os.umask(0o022)
    try:
        with TemporaryDirectory(dir=CACHE, prefix="own-") as folder:
            yield Path(folder)
    finally:
        os.umask(before)


def _image(name: str, lock: Path, architecture: str, folder: Path) -> Image:
    """The content of the image; its last layer is in the folder."""
    packages = [_debian_layer(wanted, architecture) for wanted in (BASE, ("iptables", "nftables"))]
    return Image(
        name=name,
        layers=[*packages, _libraries_layer(lock, architecture), _own_layer(folder, architecture)],
        entrypoint=["/topodns"],
        environment=ENVIRONMENT,
        user=USER,
        ports=["53/tcp", "53/udp"],
        labels=labels(),
        created=created(),
        architecture=architecture,
    )


def make_image(name: str | None, without_builder: bool, tools: bool, architecture: str = "") -> str:
    """Build by the Dockerfile where that can be; else assemble. What was made, in words. Raises CalledProcessError.

    `name` is by default NAME, or TOOLS for the image with the package kubernetes; `architecture` this machine's.
    """
    default, lock = (TOOLS, LOCK) if tools else (NAME, IMAGE_LOCK)
    name = name or default
    builder = None if without_builder else _builder()
    if builder is None:
        out = DIST / f"{'-'.join([*default.split(':'), *filter(None, [architecture])])}.image.tar"
        assemble(out, name, lock, architecture)
        return str(out)
    platform = [f"--platform=linux/{architecture}"] if architecture else []
    arguments = {"LOCK": lock.name, "VERSION": VERSION, "REVISION": revision(), "CREATED": created()}
    words = [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
    subprocess.run([builder, "build", "--tag", name, *platform, *words, str(ROOT)], check=True)
    return f"{name}, built by {builder}"


def _builder() -> str | None:
    """What can build the Dockerfile here: it runs, and gets hold of the base."""
    base = next(
        line.partition("=")[2]
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if line.startswith("ARG BASE=")
    )
    for builder in ("docker", "buildah"):
        if not shutil.which(builder):
            continue
        tried = subprocess.run([builder, "pull", base], capture_output=True, text=True, check=False)
        if tried.returncode == 0:
            return builder
        say(f"{builder} cannot pull {base}: {(tried.stderr.strip().splitlines() or [''])[-1]}")
    say("no docker or buildah that reaches a registry: assembling the image from Debian's packages")
    return None


def _packages(wanted: Sequence[str]) -> list[str]:
    return sorted({each for name in wanted for each in (name, *PACKAGES[name].split())})


def _debian_layer(wanted: Sequence[str], architecture: str) -> Layer:
    """These packages at the versions that apt has now, and a note of each where scanners look for it."""
    archives = newest_archives(_packages(wanted), architecture, SUITE)
    layer = Layer(LAYERS / f"image-{SUITE}-{key_of(_recipe(), *(path.name for path in archives))}.tar")
    if layer.made:
        return layer
    say(f"making the layer of {' and '.join(wanted)} for {architecture}")
    with TemporaryDirectory(dir=CACHE, prefix="unpack-") as folder:
        root = Path(folder)
        for archive in archives:
            subprocess.run(["dpkg-deb", "-x", archive, root], check=True)
            _note_package(archive, root / "var/lib/dpkg/status.d")
        for unused in UNUSED:
            shutil.rmtree(root / "usr/share" / unused, ignore_errors=True)
        if "python3" in wanted:
            _finish_base(root)
        if "iptables" in wanted:
            _link_alternatives(root)
        root.chmod(0o755)
        write_layer(layer, [(root, "/")])
    return layer


def _recipe() -> str:
    """What else decides on the content of a layer: how it is made, and by which Python its bytecode."""
    modules = (__file__, debian.__file__, images.__file__, layers.__file__)
    return "".join([_own_python().name, *(Path(module).read_text(encoding="utf-8") for module in modules)])


@cache
def _own_python() -> Path:
    """The root of the image's Python for this machine's architecture, unpacked in the cache under its version."""
    archives = newest_archives(_packages(["python3"]), machine_architecture(), SUITE)
    kept = CACHE / "interpreters" / f"image-{SUITE}-{key_of(*(path.name for path in archives))}"
    if kept.exists():
        return kept
    with filling():
        if not kept.exists():  # nor has another process made it meanwhile
            with making(kept) as root:
                root.mkdir()
                for archive in archives:
                    subprocess.run(["dpkg-deb", "-x", archive, root], check=True)
    return kept


def _compile(root: Path, folder: Path) -> None:
    """Bytecode for the image's Python, by the same: by its own C library, without root, and writing nothing into its
    own root. The other architecture's is no different.
    """
    own, machine = _own_python(), MACHINES[machine_architecture()]
    settings = ("env", f"PYTHONHOME={own}/usr", "PYTHONDONTWRITEBYTECODE=1")
    loader = (f"{own}{machine.loader}", "--library-path", f"{own}/usr/lib/{machine.name}-linux-gnu")
    compile_python(root, folder, [*settings, *loader, f"{own}/usr/bin/python{IMAGE_PYTHON}", "-SP"])


def _note_package(archive: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    said = subprocess.run(["dpkg-deb", "-f", archive], check=True, capture_output=True, text=True).stdout
    (folder / archive.name.partition("_")[0]).write_text(said)


def _finish_base(root: Path) -> None:
    """What the scripts of packages would have done: users, name switch, certificates, bytecode."""
    for folder in ("tmp", "proc", "sys", "dev", "run", "root"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    nobody = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin"
    (root / "etc/passwd").write_text(f"root:x:0:0:root:/root:/usr/sbin/nologin\n{nobody}\n")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    certificates = sorted((root / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    (root / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)
    (root / "etc/ssl/certs/ca-certificates.crt").write_bytes(b"".join(path.read_bytes() for path in certificates))
    for module in LEFT_OUT:
        for path in (root / f"usr/lib/python{IMAGE_PYTHON}/lib-dynload").glob(f"{module}.*.so"):
            path.unlink()
    _compile(root, root / f"usr/lib/python{IMAGE_PYTHON}")


def _link_alternatives(root: Path) -> None:
    for version in ("ip", "ip6"):
        for name in ALTERNATIVES:
            command = name.replace("ip", version, 1)
            link = root / "usr/sbin" / command
            link.unlink(missing_ok=True)
            link.symlink_to(command.replace("tables", "tables-nft", 1))


def _libraries_layer(lock: Path, architecture: str) -> Layer:
    """What the lock pins, without what only builds: every file of every wheel but the commands."""
    text = "\n".join(each.text for each in read_lock(lock) if each.installed_by(IMAGE_PYTHON))
    layer = Layer(LAYERS / f"image-libraries-{key_of(_recipe(), text, architecture)}.tar")
    if layer.made:
        return layer
    say(f"making the layer of what {lock.name} pins for {architecture}")
    with TemporaryDirectory(dir=CACHE, prefix="pip-") as folder:
        root, requirements = Path(folder, "root"), Path(folder, "requirements")
        target = Path(f"{root}{LIBRARIES}")
        target.mkdir(parents=True)
        requirements.write_text(text)
        install_requirements(requirements, target, architecture, IMAGE_PYTHON)
        _forget_commands(target)
        _compile(root, target)
        write_layer(layer, [(root, "/")])
    return layer


def _forget_commands(libraries: Path) -> None:
    """They are not there, and the hash of each would tell which interpreter has run pip."""
    for record in libraries.glob("*.dist-info/RECORD"):
        lines = record.read_text().splitlines(keepends=True)
        record.write_text("".join(line for line in lines if not line.startswith("../../bin/")))


def _own_layer(folder: Path, architecture: str) -> Layer:
    """topodns itself as its wheel has it, its commands, and the interpreter that may have port 53; kept nowhere."""
    root, layer = folder / "root", Layer(folder / "own.tar")
    target = Path(f"{root}{LIBRARIES}")
    with zipfile.ZipFile(build_wheel(folder)) as wheel:
        wheel.extractall(target)
    _place_demo(root)
    _compile(root, target)
    _place_commands(root, architecture)
    write_layer(layer, [(root, "/")], {PYTHON: NET_BIND_SERVICE})
    return layer


def _place_commands(root: Path, architecture: str) -> None:
    """What `python3 -m venv --copies` and pip make, and the names of the programs that it stands in for."""
    commands = Path(f"{root}{HOME}/bin")
    commands.mkdir(parents=True)
    with TemporaryDirectory(dir=CACHE, prefix="unpack-") as unpacked:
        (archive,) = newest_archives([f"python{IMAGE_PYTHON}-minimal"], architecture, SUITE)
        subprocess.run(["dpkg-deb", "-x", archive, unpacked], check=True)
        shutil.copyfile(f"{unpacked}/usr/bin/python{IMAGE_PYTHON}", f"{root}{PYTHON}")
    Path(f"{root}{PYTHON}").chmod(0o755)
    Path(f"{root}{HOME}/pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    for name, function in COMMANDS.items():
        script = commands / name
        script.write_text(f"#!{PYTHON}\nimport sys\nfrom topodns.cli.main import {function}\nsys.exit({function}())\n")
        script.chmod(0o755)
    for link, name in LINKS.items():
        Path(f"{root}{link}").symlink_to(f"{HOME}/bin/{name}")


def _place_demo(root: Path) -> None:
    here, there = ROOT / DEMO[0], Path(f"{root}{DEMO[1]}")
    for path in sorted(path for path in here.rglob("*") if path.is_file()):
        copied = there / path.relative_to(here)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copied)
