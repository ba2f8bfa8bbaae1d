"""Every file in config/ is loaded here, as the server would load it, without a complaint."""

from pathlib import Path

import pytest

from topodns.cluster.model import Change, Replaced
from topodns.edge.manifests import SUFFIXES, ManifestSource

CONFIG = Path(__file__).parents[2] / "config"
MANIFEST_DIRECTORIES = sorted({path.parent for path in CONFIG.rglob("*") if path.suffix in SUFFIXES})


def loaded(directory: Path) -> tuple[ManifestSource, dict[str, Replaced]]:
    changes: dict[str, Replaced] = {}

    def take(change: Change) -> None:
        assert isinstance(change, Replaced)
        changes[change.kind] = change

    source = ManifestSource([str(directory)], take)
    source.load()
    return source, changes


@pytest.mark.parametrize("directory", MANIFEST_DIRECTORIES, ids=lambda path: str(path.relative_to(CONFIG)))
def test_manifests_load_without_a_warning(directory: Path) -> None:
    source, changes = loaded(directory)
    assert source.problems == ()
    assert changes["Service"].objects


def test_every_file_is_a_corefile_or_a_manifest() -> None:
    """So that a new sort of file in config/ is not forgotten here."""
    files = [path for path in CONFIG.rglob("*") if path.is_file() and path.name != "Corefile"]
    assert [path for path in files if path.parent not in MANIFEST_DIRECTORIES or path.suffix not in SUFFIXES] == []
