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
from typing import Any, BinaryIO, Final

from tests.kubelab.cache import CACHE, key_of, making, say
from tests.kubelab.debian import RELEASE, compile_python, debian_layer
from tests.kubelab.layers import LAYERS, Added, Descriptor, Layer, write_layer
from tests.kubelab.programs import COREDNS, PAUSE

IMAGES: Final = CACHE / "images"
PYTHON_PACKAGES: Final = (
    "/usr/local/lib/python3.11/dist-packages"  # where Debian's Python looks for what is not Debian's
)

_PATH: Final = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PREFIX: Final = "application/vnd.oci.image"
# By architecture, which Debian, OCI and Go call by one name: tags of the wheels for Debian's Python (PEP 600), the best
# first.
WHEELS: Final[Mapping[str, tuple[str, str]]] = {
    "amd64": ("manylinux_2_28_x86_64", "manylinux2014_x86_64"),
    "arm64": ("manylinux_2_28_aarch64", "manylinux2014_aarch64"),
}


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
    architecture: str = "amd64"

    @property
    def platform(self) -> dict[str, str]:
        """The property `platform` of a descriptor (OCI image spec, image-index.md)."""
        return {"architecture": self.architecture, "os": "linux"}

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
        manifest = _Manifest(image, layers, [layer.descriptor for layer in layers])
        names = [image.name, *image.more_names]
        # What docker reads before version 25, which knows no OCI layout.
        paths = {"Config": _blob_path(manifest.config.descriptor), "Layers": [*map(_blob_path, manifest.layers)]}
        older = json.dumps([{**paths, "RepoTags": names}]).encode()
        _write_archive(out, names, manifest.descriptor, [manifest], {"manifest.json": older})
    say(f"{out}: {image.name}, {out.stat().st_size / 1e6:.0f} MB")


def write_index(out: Path, images: Sequence[Image]) -> None:
    """Write the archive of one image for several platforms: an index of their manifests, the layers by gzip, so that a
    registry gets this index with its digest unchanged (skopeo copy --all --preserve-digests).
    """
    manifests = []
    for image in images:
        layers = [layer.compressed() for layer in image.layers]
        manifests.append(_Manifest(image, layers, [layer.descriptor for layer in image.layers]))
    index = _index([manifest.descriptor for manifest in manifests])
    _write_archive(out, [images[0].name], index.descriptor, manifests, {_blob_path(index.descriptor): index.data})
    say(f"{out}: {images[0].name} for {' and '.join(image.architecture for image in images)}, {index.digest}")


@dataclass(frozen=True, slots=True)
class _Blob:
    media_type: str
    value: Mapping[str, Any]
    data: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", json.dumps(self.value, sort_keys=True).encode())

    @property
    def descriptor(self) -> Descriptor:
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.data)}

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"


def _index(manifests: Sequence[Mapping[str, Any]]) -> _Blob:
    kind = f"{_PREFIX}.index.v1+json"
    return _Blob(kind, {"schemaVersion": 2, "mediaType": kind, "manifests": manifests})


class _Manifest:
    """The manifest of an image and its configuration. `plain`: descriptors of the layers before compression."""

    def __init__(self, image: Image, layers: Sequence[Layer], plain: Sequence[Descriptor]) -> None:
        self.files = [layer.tar for layer in layers]
        self.layers = [layer.descriptor for layer in layers]
        self.config = _Blob(
            f"{_PREFIX}.config.v1+json",
            {**image.platform, "config": image.config()}
            | {"rootfs": {"type": "layers", "diff_ids": [each["digest"] for each in plain]}}
            | ({"created": image.created} if image.created else {}),
        )
        kind = f"{_PREFIX}.manifest.v1+json"
        content = {"schemaVersion": 2, "mediaType": kind, "config": self.config.descriptor, "layers": self.layers}
        self.blob = _Blob(kind, content)
        self.descriptor: dict[str, Any] = {**self.blob.descriptor, "platform": image.platform}


def _write_archive(
    out: Path, names: Sequence[str], root: Descriptor, manifests: Sequence[_Manifest], more: Mapping[str, bytes]
) -> None:
    """An OCI image layout (image-layout.md) as a tar. `root`: what the names stand for; `more`: further members."""
    named = [{**root, "annotations": {"io.containerd.image.name": full_name(name)}} for name in names]
    blobs = [blob for manifest in manifests for blob in (manifest.config, manifest.blob)]
    members = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": _index(named).data, **more}
    members |= {_blob_path(blob.descriptor): blob.data for blob in blobs}
    files = {_blob_path(each): file for one in manifests for each, file in zip(one.layers, one.files, strict=True)}
    with making(out) as new, tarfile.open(new, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in members.items():
            _put(archive, name, io.BytesIO(data), len(data))
        for name, path in files.items():
            with open(path, "rb") as file:
                _put(archive, name, file, path.stat().st_size)


def full_name(name: str) -> str:
    """The name by which a kubelet asks containerd for this image: without a host it is of Docker's registry."""
    host, slash, _ = name.partition("/")
    if slash and (host == "localhost" or "." in host or ":" in host):
        return name
    return f"docker.io/{name}" if slash else f"docker.io/library/{name}"


def _blob_path(descriptor: Descriptor) -> str:
    return f"blobs/{descriptor['digest']}".replace(":", "/")


def _put(archive: tarfile.TarFile, name: str, content: BinaryIO, size: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    archive.addfile(info, content)


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


def install_requirements(lock: Path, target: Path, architecture: str = "amd64", python: str = "3.11") -> None:
    """Wheels for this version of Debian's Python and no others, each with a hash of the lock file; none of their
    commands.
    """
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    wanted = ["--only-binary", ":all:", "--python-version", python, "--implementation", "cp"]
    platforms = [word for tag in WHEELS[architecture] for word in ("--platform", tag)]
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
