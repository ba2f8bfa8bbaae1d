"""The cluster of tests/support/explained_cluster.py as fixtures."""

from pathlib import Path

import pytest

from tests.support.explained_cluster import with_topology, write_manifests
from topodns.plugins.block import Settings


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with the manifests, to which a test may add."""
    write_manifests(tmp_path)
    return tmp_path


@pytest.fixture
def served(directory: Path) -> Settings:
    return with_topology(directory)
