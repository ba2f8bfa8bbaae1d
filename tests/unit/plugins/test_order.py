"""The one list of plugins: every plugin is in it once, under its name, and can be loaded."""

from pathlib import Path

import pytest

import topodns.plugins
from topodns.plugins.order import ORDER
from topodns.plugins.plugin import load

# Modules of the room that are no plugin.
OTHERS = {"__init__", "block", "compatibility", "context", "order", "plugin", "setup"}


def test_every_module_of_the_room_is_a_plugin_of_the_list() -> None:
    (room,) = topodns.plugins.__path__
    modules = {path.stem for path in Path(room).iterdir() if path.stem != "__pycache__"}
    assert modules - OTHERS == set(ORDER)
    assert len(ORDER) == len(set(ORDER))


@pytest.mark.parametrize("name", ORDER)
def test_a_plugin_is_loaded_by_its_name(name: str) -> None:
    assert load(name).name == name
