"""A lab for as long as tests need it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kubelab.lab import Lab
from tests.kubelab.options import Options


@contextmanager
def lab_of(options: Options, directory: Path, *archives: Path) -> Iterator[Lab]:
    """Up with the images of these archives, and down in the end."""
    lab = Lab(directory)
    lab.up(options, archives)
    try:
        yield lab
    finally:
        lab.down()
