"""An image's archive, read and unpacked; and its programs run as a container's would be: its user, its root read-only,
nothing else of this machine.
"""

import json
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from release.image import ENVIRONMENT

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
exec env -i PATH=/usr/sbin:/usr/bin HOME=/ $ENVIRONMENT $LIMITS chroot --userspec="$user" --groups= "$root" "$@"
"""
WITHOUT_NEW_PRIVILEGES: Final = "setpriv --no-new-privs"
WITHOUT_ITS_CAPABILITY: Final = "setpriv --bounding-set=-net_bind_service"


@dataclass(frozen=True, slots=True)
class Archive:
    """An OCI image archive."""

    path: Path

    def config(self) -> dict[str, Any]:
        """The image configuration (OCI image spec, config.md)."""
        return self._blob(self._manifest()["config"])

    def layer_sizes(self) -> list[int]:
        """Octets of each, not compressed."""
        return [layer["size"] for layer in self._manifest()["layers"]]

    def names(self) -> set[str]:
        """All paths in all layers."""
        with tarfile.open(self.path) as archive:
            found: set[str] = set()
            for layer in self._manifest()["layers"]:
                with tarfile.open(fileobj=archive.extractfile(_member(layer))) as tar:
                    found.update(f"/{name}" for name in tar.getnames())
        return found

    def unpack(self, root: Path) -> None:
        """As a runtime does it, capabilities and all (root)."""
        root.mkdir()
        for layer in self._manifest()["layers"]:
            with tarfile.open(self.path) as archive, open(root.parent / "layer.tar", "wb") as out:
                content = archive.extractfile(_member(layer))
                assert content is not None
                while chunk := content.read(1 << 20):
                    out.write(chunk)
            how = ["tar", "--extract", "--xattrs", "--xattrs-include=*", "--preserve-permissions", "--same-owner"]
            subprocess.run([*how, "--file", root.parent / "layer.tar", "--directory", root], check=True)
            (root.parent / "layer.tar").unlink()

    def _manifest(self) -> dict[str, Any]:
        with tarfile.open(self.path) as archive:
            (manifest,) = json.load(archive.extractfile("index.json"))["manifests"]  # type: ignore[arg-type]
        return self._blob(manifest)

    def _blob(self, descriptor: dict[str, Any]) -> dict[str, Any]:
        with tarfile.open(self.path) as archive:
            read: dict[str, Any] = json.load(archive.extractfile(_member(descriptor)))  # type: ignore[arg-type]
        return read


def _member(descriptor: dict[str, Any]) -> str:
    return f"blobs/{descriptor['digest']}".replace(":", "/")


def confined(root: Path, user: str, files: Path, command: Sequence[str], limits: str = "") -> list[str]:
    """The words that run a command of the image in a network of its own. `files` are at /run; `limits` sets some."""
    script = _CONFINE.replace("$LIMITS", limits).replace("$ENVIRONMENT", " ".join(ENVIRONMENT))
    own = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh"]
    return [*own, str(root), str(files), user, *command]
