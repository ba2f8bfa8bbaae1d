"""The state of a cluster of manifests for an audit. By the API server: tests/stories/test_sources.py."""

from pathlib import Path

import pytest

from tests.support.documents import ROOT
from topodns.inspect.errors import Refused
from topodns.inspect.sources import manifest_state
from topodns.plugins.topology.settings import TopologySettings

DEMO = str(ROOT / "config/demo/cluster")


def test_a_directory_of_manifests_is_a_whole_cluster() -> None:
    state, _ = manifest_state([DEMO], TopologySettings())
    assert (len(state.nodes.by_name), state.synced, len(state.policies.all())) == (9, True, 8)


def test_several_files_are_one_cluster() -> None:
    state, _ = manifest_state([f"{DEMO}/nodes.yaml", f"{DEMO}/shop.yaml"], TopologySettings())
    assert {key.namespace for key in state.policies.all()} == {"shop"}


def test_a_file_that_cannot_be_read_leaves_nothing_to_audit(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(Refused, match="nothing to audit: 1 manifest file cannot be read"):
        manifest_state([DEMO, str(tmp_path)], TopologySettings())
    with pytest.raises(Refused, match="nothing to audit: 2 manifest files cannot be read"):
        manifest_state([DEMO, str(tmp_path), str(tmp_path / "none")], TopologySettings())
