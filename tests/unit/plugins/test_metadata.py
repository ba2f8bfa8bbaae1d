"""`metadata`: its zones, and labels that never have a value."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.app.load import settings_from_text


def test_metadata_may_have_zones() -> None:
    assert only_block("metadata").settings.get("metadata")
    assert only_block("metadata example.org").settings.get("metadata")
    assert "found no zone's name: empty label in 'a..b'" in block_problem("metadata a..b")


@pytest.mark.parametrize(
    ("directives", "expected"),
    [
        ("metadata\nlog . {/zone/wildcard}", ["plugin/log: ... 'zone/wildcard' ...: there is no such label"]),
        ("metadata\nlog . {/kubernetes/pod}", ["plugin/log: ... 'kubernetes/pod' ...: there is no such label"]),
        (
            "metadata\nlog . {/kubernetes/kind}",
            ["plugin/log: ... 'kubernetes/kind' ...: the block has no 'kubernetes'"],
        ),
        ("metadata\nlog . {/view/name}", ["plugin/log: ... 'view/name' ...: the block has no 'view'"]),
        ("log . {/view/name}", ["plugin/log: ... 'view/name' ...: the block has no 'metadata'"]),
        (
            "metadata\nrewrite edns0 local set 0xffee {kubernetes/nod}",
            ["plugin/rewrite: ... 'kubernetes/nod' ...: there is no such label"],
        ),
        (
            "metadata\nview v {\nexpr metadata('a/b') == 'c' && metadata('view/name') == 'v'\n}",
            ["plugin/view: ... 'a/b' ...: there is no such label"],
        ),
        (
            'metadata\nkubernetes\nlog . "{/kubernetes/kind} {/kubernetes/client-label/a} {/log/type}"',
            [],
        ),
        ('log . "{name} {/log/class} {/forward/upstream}"', []),
    ],
)
def test_a_label_that_never_has_a_value_is_named(directives: str, expected: list[str]) -> None:
    lines: list[str] = []
    settings_from_text(f".:53 {{\n{directives}\nwhoami\n}}\n", "Corefile", 53, {}, lines.append)
    found = (line.replace("The metadata label", "...").replace("never has a value", "...") for line in lines)
    assert list(found) == [f"{line} (Corefile:1)" for line in expected]
