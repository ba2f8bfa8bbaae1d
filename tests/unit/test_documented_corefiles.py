import re
from pathlib import Path

import pytest

from topodns.app.load import settings_from_text
from topodns.plugins.order import ORDER

ROOT = Path(__file__).parents[2]
MANUAL = (ROOT / "docs/reference/corefile.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```corefile\n(.*?)^```$", MANUAL, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.splitlines()[0])
def test_every_example_of_the_manual_is_a_good_corefile(example: str) -> None:
    assert settings_from_text(example, str(ROOT / "Corefile"), 53, {}).blocks


def test_the_manual_has_a_section_and_an_example_for_every_directive() -> None:
    sections = set(re.findall(r"^### (\w+)$", MANUAL, re.MULTILINE))
    shown = {
        directive
        for example in EXAMPLES
        for block in settings_from_text(example, str(ROOT / "Corefile"), 53, {}).blocks
        for directive in block.directives
    }
    assert sections == set(ORDER)
    assert shown == set(ORDER)
