"""An image's archive, read and unpacked; and its programs run as a container's would be: its user, its root read-only,
nothing else of this machine. Those of another architecture are run by an emulator.
"""

import json
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from release.image import ENVIRONMENT, PYTHON
from tests.support.emulation import MACHINES, emulated

_CONFINE: Final = r"""
set -e
mount --bind "$1" "$1"
mount --bind "$2" "$1/run"
mount -o remount,bind,ro "$1/run"
mount -o remount,bind,ro "$1"
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/dev" && touch "$1/dev/null" && mount --bind /dev/null "$1/dev/null"
ip link set lo up
root="$1"; user="$3"; shift 3
exec env -i ${QEMU_CPU:+"QEMU_CPU=$QEMU_CPU"} PATH=/usr/sbin:/usr/bin HOME=/ $ENVIRONMENT $LIMITS \
    chroot --userspec="$user" --groups= "$root" "$@"
"""
WITHOUT_NEW_PRIVILEGES: Final = "setpriv --no-new-privs"
WITHOUT_ITS_CAPABILITY: Final = "setpriv --bounding-set=-net_bind_service"


@dataclass(frozen=True, slots=True)
class Archive:
    """An OCI image archive. `architecture`: which image of an index."""

    path: Path
    architecture: str = ""

    def config(self) -> dict[str, Any]:
        """The image configuration (OCI image spec, config.md)."""
        return self._blob(self.manifest()["config"])

    def layer_sizes(self) -> list[int]:
        """Octets of each, not compressed."""
        return [layer["size"] for layer in self.manifest()["layers"]]

    def names(self) -> set[str]:
        """All paths in all layers."""
        with tarfile.open(self.path) as archive:
            found: set[str] = set()
            for layer in self.manifest()["layers"]:
                with tarfile.open(fileobj=archive.extractfile(_member(layer))) as tar:
                    found.update(f"/{name}" for name in tar.getnames())
        return found

    def unpack(self, root: Path) -> None:
        """As a runtime does it, capabilities and all (root)."""
        root.mkdir()
        for layer in self.manifest()["layers"]:
            with tarfile.open(self.path) as archive, open(root.parent / "layer.tar", "wb") as out:
                content = archive.extractfile(_member(layer))
                assert content is not None
                while chunk := content.read(1 << 20):
                    out.write(chunk)
            how = ["tar", "--extract", "--xattrs", "--xattrs-include=*", "--preserve-permissions", "--same-owner"]
            subprocess.run([*how, "--file", root.parent / "layer.tar", "--directory", root], check=True)
            (root.parent / "layer.tar").unlink()

    def top(self) -> dict[str, Any]:
        """The one descriptor of index.json: of a manifest, or of an index of manifests."""
        with tarfile.open(self.path) as archive:
            (descriptor,) = json.load(archive.extractfile("index.json"))["manifests"]  # type: ignore[arg-type]
        return dict(descriptor)

    def manifest(self) -> dict[str, Any]:
        """The manifest of the image (OCI image spec, manifest.md)."""
        found = self._blob(self.top())
        for descriptor in found.get("manifests", ()):
            if descriptor["platform"] == {"architecture": self.architecture, "os": "linux"}:
                return self._blob(descriptor)
        return found

    def _blob(self, descriptor: dict[str, Any]) -> dict[str, Any]:
        with tarfile.open(self.path) as archive:
            read: dict[str, Any] = json.load(archive.extractfile(_member(descriptor)))  # type: ignore[arg-type]
        return read


def _member(descriptor: dict[str, Any]) -> str:
    return f"blobs/{descriptor['digest']}".replace(":", "/")


def architecture_of(root: Path) -> str:
    """That of the interpreter in an unpacked image, in Debian's words."""
    with open(f"{root}{PYTHON}", "rb") as file:
        head = file.read(20)
    return next(name for name, machine in MACHINES.items() if machine.elf == int.from_bytes(head[18:], "little"))


def confined(root: Path, user: str, files: Path, command: Sequence[str], limits: str = "") -> list[str]:
    """The words that run a command of the image in a network of its own. `files` are at /run; `limits` sets some."""
    script = _CONFINE.replace("$LIMITS", limits).replace("$ENVIRONMENT", " ".join(ENVIRONMENT))
    own = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh"]
    return emulated(architecture_of(root), [*own, str(root), str(files), user, *command])
