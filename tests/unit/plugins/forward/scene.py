"""A `forward` directive from text, and one with a slow upstream."""

import pytest

from tests.support.corefile_settings import only_directive
from tests.support.forward_with_upstreams import ForwardScene
from tests.support.scripted_upstream import whatever
from topodns.corefile.errors import ConfigError
from topodns.plugins.context import Context
from topodns.plugins.forward.settings import Forward
from topodns.plugins.forward.setup import parse_forward


def forward(text: str, directory: str = "") -> Forward:
    """The settings of a directive that starts on line 1 of its Corefile."""
    (settings,) = parse_forward(only_directive(text), Context(((),), directory))
    return settings


def problem(text: str, directory: str = "") -> str:
    with pytest.raises(ConfigError) as refused:
        forward(text, directory)
    return str(refused.value)


def slow_scene(**settings: object) -> ForwardScene:
    """The upstream takes 0.3 s."""
    scene = ForwardScene(whatever, **settings)  # type: ignore[arg-type]  # only settings
    scene.upstreams[0].delay = 0.3
    return scene
