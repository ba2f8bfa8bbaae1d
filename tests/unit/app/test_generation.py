"""Which clients share ready-made answers: those of one node, and those of no known node, never both together."""

from pathlib import Path
from random import Random

import pytest

from tests.support.corefile_settings import settings
from tests.support.generation_builder import read_whole
from tests.support.model_builders import packed
from topodns.app.generation import Assembly, Generation, Machine
from topodns.plugins.kubernetes.setup import OnNode, Unlocated
from topodns.query.label_limiter import MAX_NAMED, OTHERS

NODES = {OTHERS: "10.9.0.1", "node-a": "10.9.0.2", "10.0.0.0": "10.9.0.3", "none": "10.9.0.4"}


@pytest.fixture
def generation(tmp_path: Path) -> Generation:
    """One cluster with Nodes of these names, which are located by their addresses alone."""
    (tmp_path / "nodes.yaml").write_text(
        "".join(
            f'---\napiVersion: v1\nkind: Node\nmetadata: {{name: "{name}"}}\n'
            f"status: {{addresses: [{{type: InternalIP, address: {address}}}]}}\n"
            for name, address in NODES.items()
        )
    )
    text = ". {\nkubernetes cluster.local {\nmanifests nodes.yaml\n}\ntopology {\nlocate nodes\n}\n}\n"
    assembly = Assembly(Machine("here", "", frozenset(), Random(0)), lambda line: None)
    return read_whole(assembly, settings(text, str(tmp_path)))


@pytest.mark.parametrize(("name", "address"), NODES.items())
def test_the_clients_on_a_node_share_a_view_with_no_other_client_whatever_the_node_s_name(
    generation: Generation, name: str, address: str
) -> None:
    elsewhere = [packed(f"10.{number // 200}.{number % 200}.7") for number in range(3 * MAX_NAMED)]
    keys = [generation.view_key(each) for each in elsewhere]
    assert generation.view_key(packed(address)) == (OnNode(name),)
    assert (OnNode(name),) not in keys
    assert keys.count((Unlocated(None),)) == 2 * MAX_NAMED


def test_clients_of_no_known_node_share_as_they_are_counted(generation: Generation) -> None:
    one, same, other = (generation.view_key(packed(address)) for address in ("10.0.0.1", "10.0.0.2", "10.0.1.1"))
    assert one == same == (Unlocated(bytes((10, 0, 0))),)
    assert other == (Unlocated(bytes((10, 0, 1))),)
