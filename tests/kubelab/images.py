"""Container images assembled without a registry, as OCI image archives that containerd imports."""

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.kubelab.cache import CACHE, key_of, making, say
from tests.kubelab.debian import RELEASE, compile_python, debian_layer
from tests.kubelab.layers import LAYERS, Added, Descriptor, Layer, write_layer
from tests.kubelab.programs import COREDNS, PAUSE

IMAGES: Final = CACHE / "images"
PYTHON_PACKAGES: Final = (
    "/usr/local/lib/python3.11/dist-packages"  # where Debian's Python looks for what is not Debian's
)

_PATH: Final = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PLATFORM: Final = {"architecture": "amd64", "os": "linux"}


@dataclass(frozen=True, slots=True)
class Image:
    """The content of an image to be. The files of an `add` become one layer more."""

    name: str
    layers: Sequence[Layer] = ()
    add: Sequence[Added] = ()
    more_names: Sequence[str] = ()
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    environment: Sequence[str] = ()
    directory: str = "/"
    user: str = ""
    ports: Sequence[str] = ()  # 53/udp
    labels: Mapping[str, str] = field(default_factory=dict)
    created: str = ""  # RFC 3339

    def config(self) -> dict[str, Any]:
        """The part `config` of the image configuration (OCI image spec, config.md)."""
        chosen = {
            "User": self.user,
            "Entrypoint": list(self.entrypoint),
            "Cmd": list(self.command),
            "ExposedPorts": {port: {} for port in self.ports},
            "Labels": dict(self.labels),
        }
        said = {name: value for name, value in chosen.items() if value}
        return {"Env": [_PATH, *self.environment], "WorkingDir": self.directory} | said


def write_image(out: Path, image: Image) -> None:
    """Write the archive: the layers, then one of the added files. containerd, podman, skopeo and docker load it."""
    with TemporaryDirectory(dir=out.parent, prefix=".image-") as scratch:
        layers = list(image.layers)
        if image.add:
            layers.append(Layer(Path(scratch) / "added.tar"))
            write_layer(layers[-1], image.add)
        with making(out) as new, tarfile.open(new, "w", format=tarfile.PAX_FORMAT) as archive:
            _write_archive(archive, image, layers)
    say(f"{out}: {image.name}, {out.stat().st_size / 1e6:.0f} MB")


@dataclass(frozen=True, slots=True)
class _Blob:
    media_type: str
    value: Mapping[str, Any]
    data: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", json.dumps(self.value, sort_keys=True).encode())

    @property
    def descriptor(self) -> Descriptor:
        digest = f"sha256:{hashlib.sha256(self.data).hexdigest()}"
        return {"mediaType": self.media_type, "digest": digest, "size": len(self.data)}


def _write_archive(archive: tarfile.TarFile, image: Image, layers: Sequence[Layer]) -> None:
    descriptors = [layer.descriptor for layer in layers]
    digests = [descriptor["digest"] for descriptor in descriptors]
    prefix = "application/vnd.oci.image"
    config = _Blob(
        f"{prefix}.config.v1+json",
        {**_PLATFORM, "config": image.config(), "rootfs": {"type": "layers", "diff_ids": digests}}
        | ({"created": image.created} if image.created else {}),
    )
    manifest = _Blob(
        f"{prefix}.manifest.v1+json",
        {"schemaVersion": 2, "mediaType": f"{prefix}.manifest.v1+json", "config": config.descriptor}
        | {"layers": descriptors},
    )
    names = [image.name, *image.more_names]
    named = [{"platform": _PLATFORM, "annotations": {"io.containerd.image.name": full_name(name)}} for name in names]
    manifests = [manifest.descriptor | each for each in named]
    index = {"schemaVersion": 2, "mediaType": f"{prefix}.index.v1+json", "manifests": manifests}
    _put(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
    _put(archive, "index.json", json.dumps(index, sort_keys=True).encode())
    # What docker reads before version 25, which knows no OCI layout.
    paths = {"Config": _blob_path(config.descriptor), "Layers": [_blob_path(each) for each in descriptors]}
    _put(archive, "manifest.json", json.dumps([{**paths, "RepoTags": names}]).encode())
    for blob in (config, manifest):
        _put(archive, _blob_path(blob.descriptor), blob.data)
    for descriptor, layer in zip(descriptors, layers, strict=True):
        info = tarfile.TarInfo(_blob_path(descriptor))
        info.size, info.mode = int(descriptor["size"]), 0o644
        with open(layer.tar, "rb") as file:
            archive.addfile(info, file)


def full_name(name: str) -> str:
    """The name by which a kubelet asks containerd for this image: without a host it is of Docker's registry."""
    host, slash, _ = name.partition("/")
    if slash and (host == "localhost" or "." in host or ":" in host):
        return name
    return f"docker.io/{name}" if slash else f"docker.io/library/{name}"


def _blob_path(descriptor: Descriptor) -> str:
    return f"blobs/{descriptor['digest']}".replace(":", "/")


def _put(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o644
    archive.addfile(info, io.BytesIO(data))


def requirements_layer(lock: Path) -> Layer:
    """The packages of a pip lock file with hashes, as wheels for the image's Python; made once for each content."""
    layer = Layer(LAYERS / f"pip-{RELEASE}-{key_of(lock.read_bytes())}.tar")
    if layer.made:
        return layer
    say(f"making a layer of {lock}")
    with TemporaryDirectory(dir=CACHE, prefix="pip-") as root:
        target = Path(root + PYTHON_PACKAGES)
        install_requirements(lock, target)
        compile_python(Path(root), target)
        write_layer(layer, [(Path(root), "/")])
    return layer


def install_requirements(lock: Path, target: Path) -> None:
    """Wheels for Debian's Python on amd64 and no others, each with a hash of the lock file; none of their commands."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    wanted = ["--only-binary", ":all:", "--python-version", "3.11", "--implementation", "cp"]
    platforms = ["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64"]
    subprocess.run(
        [*pip, *wanted, *platforms, "--require-hashes", "--no-deps", "--target", target, "-r", lock], check=True
    )
    shutil.rmtree(target / "bin", ignore_errors=True)


def lab_images() -> list[Path]:
    """The archives that are on every node from the start, made where missing."""
    pause = Image("localhost/pause:1", add=[(PAUSE.folder / "pause", "/pause")], entrypoint=["/pause"])
    coredns = Image(
        f"localhost/coredns:{COREDNS.version}",
        add=[(COREDNS.folder / "coredns", "/coredns")],
        entrypoint=["/coredns"],
    )
    layers = [debian_layer("python"), debian_layer("nettools")]
    python = Image("localhost/python:3.11", layers, command=["python3"])
    made_of = {
        PAUSE.folder.name: pause,
        COREDNS.folder.name: coredns,
        f"python-{key_of(*(str(layer.descriptor['digest']) for layer in layers))}": python,
    }
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, image in made_of.items():
        if not (IMAGES / f"{name}.tar").exists():
            write_image(IMAGES / f"{name}.tar", image)
    return [IMAGES / f"{name}.tar" for name in made_of]
