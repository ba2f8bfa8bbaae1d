"""An image with Debian's dig and dnsperf for pods that ask, made without a registry and kept in kubelab's cache."""

from pathlib import Path
from typing import Final

from tests.kubelab.cache import filling, key_of
from tests.kubelab.debian import debian_layer
from tests.kubelab.images import IMAGES, Image, write_image

DNSTOOLS_IMAGE: Final = "localhost/dnstools:1"


def dnstools_image() -> Path:
    """The archive, made where missing. Raises OSError or CalledProcessError."""
    with filling():
        layers = [debian_layer("python"), debian_layer("dnstools")]
        out = IMAGES / f"dnstools-{key_of(*(str(layer.descriptor['digest']) for layer in layers))}.tar"
        if not out.exists():
            IMAGES.mkdir(parents=True, exist_ok=True)
            write_image(out, Image(DNSTOOLS_IMAGE, layers, command=["python3"]))
    return out


if __name__ == "__main__":
    dnstools_image()
