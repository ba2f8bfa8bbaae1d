"""The working tree as a container image, under the name that a release has."""

from pathlib import Path
from typing import Final

from release.image import NAME, assemble

ROOT: Final = Path(__file__).parents[3]
TOPODNS_IMAGE: Final = NAME


def write_topodns_image(out: Path) -> None:
    """Only what is of this tree is made anew; the wheels come from pip once for each content of the lock."""
    assemble(out)
