"""The working tree as a container image: the lab's Python, nft and iptables, what requirements.lock pins, and topodns
as it is now.
"""

from pathlib import Path
from typing import Final

from tests.kubelab.debian import debian_layer
from tests.kubelab.images import PYTHON_PACKAGES, Image, requirements_layer, write_image

ROOT: Final = Path(__file__).parents[3]
TOPODNS_IMAGE: Final = "localhost/topodns:test"


def write_topodns_image(out: Path) -> None:
    """Only what is of this tree is made anew; the wheels come from pip once for each content of the lock."""
    sources = [
        path for path in sorted((ROOT / "topodns").rglob("*")) if path.suffix == ".py" or path.name == "py.typed"
    ]
    image = Image(
        name=TOPODNS_IMAGE,
        layers=[debian_layer("python"), debian_layer("nettools"), requirements_layer(ROOT / "requirements.lock")],
        add=[(path, f"{PYTHON_PACKAGES}/{path.relative_to(ROOT)}") for path in sources],
        entrypoint=["python3", "-m", "topodns"],
        environment=["PYTHONDONTWRITEBYTECODE=1"],
    )
    write_image(out, image)
