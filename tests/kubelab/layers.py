"""Layers of images: reproducible tars in the cache, each with its descriptor beside it. Knows no Debian, no images."""

import gzip
import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kubelab.cache import CACHE, making

LAYERS: Final = CACHE / "layers"
_MEDIA_TYPE: Final = "application/vnd.oci.image.layer.v1.tar"

Descriptor = dict[str, str | int]
Added = tuple[Path, str]  # what, and where in the image; see write_layer


@dataclass(frozen=True, slots=True)
class Layer:
    """A tar that is there once its descriptor (OCI image spec, descriptor.md) is."""

    tar: Path

    @property
    def made(self) -> bool:
        return self.note.exists()

    @property
    def note(self) -> Path:
        return self.tar.with_suffix(".json")

    @property
    def descriptor(self) -> Descriptor:
        descriptor: Descriptor = json.loads(self.note.read_text())
        return descriptor

    def compressed(self) -> "Layer":
        """The same by gzip, beside it, the same octets each time; made where missing."""
        packed = Layer(self.tar.with_suffix(".tar.gz"))
        if not packed.made:
            with (
                open(self.tar, "rb") as plain,
                making(packed.tar) as new,
                open(new, "wb") as out,
                gzip.GzipFile("", "wb", mtime=0, fileobj=out) as file,
            ):
                shutil.copyfileobj(plain, file, 1 << 20)
            _describe(packed, f"{_MEDIA_TYPE}+gzip")
        return packed


def write_layer(layer: Layer, added: Iterable[Added], granted: Mapping[str, bytes] | None = None) -> None:
    """Names sorted, times zero, owners root. A file becomes its target (TARGET/NAME where the target ends with /); the
    files of a folder come under the target. `granted`: by path in the image, the capabilities of that file
    (struct vfs_cap_data of linux/capability.h); writing them does not need root.
    """
    with making(layer.tar) as new, tarfile.open(new, "w", format=tarfile.PAX_FORMAT) as tar:
        for source, target in added:
            _add(tar, source, target, granted or {})
    _describe(layer, _MEDIA_TYPE)


def _describe(layer: Layer, media_type: str) -> None:
    with open(layer.tar, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    size = layer.tar.stat().st_size
    descriptor: Descriptor = {"mediaType": media_type, "digest": f"sha256:{digest}", "size": size}
    layer.note.write_text(json.dumps(descriptor))


def _add(tar: tarfile.TarFile, source: Path, target: str, granted: Mapping[str, bytes]) -> None:
    name = target.strip("/")
    if not source.is_dir():
        inside = f"{name}/{source.name}".lstrip("/") if target.endswith("/") else name
        _put(tar, source.resolve(), inside, granted)
        return
    if name:
        _put(tar, source, name, granted)
    for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
        inside = f"{name}/{entry.name}".lstrip("/")
        if entry.is_dir(follow_symlinks=False):
            _add(tar, Path(entry.path), inside, granted)
        else:
            _put(tar, Path(entry.path), inside, granted)


def _put(tar: tarfile.TarFile, source: Path, name: str, granted: Mapping[str, bytes]) -> None:
    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        if capabilities := granted.get(f"/{name}"):
            info.pax_headers = {"SCHILY.xattr.security.capability": capabilities.decode()}
        return info

    tar.add(source, arcname=name, recursive=False, filter=plain)
