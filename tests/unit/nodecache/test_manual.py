"""docs/operate/node-cache.md has the flags and variables that there are, and an example that can be served."""

import re
from pathlib import Path

import pytest

from tests.support.node_cache_template import ENVIRONMENT, node_flags
from topodns.nodecache.corefile import NodeCorefile
from topodns.nodecache.flags import FLAGS
from topodns.nodecache.settings import FileText, NodeConfigTexts
from topodns.nodecache.template import VARIABLES

MANUAL = (Path(__file__).parents[3] / "docs/operate/node-cache.md").read_text(encoding="utf-8")
FLAG_ROW = re.compile(r"^\| (`-[^|]*`) \| (?:`([^|]*)`)? ?\|", re.MULTILINE)
VARIABLE_ROW = re.compile(r"^\| `(__[A-Z_]+__)` \|", re.MULTILINE)
(TEMPLATE,) = re.findall(r"^```corefile\n(.*?)^```$", MANUAL, re.MULTILINE | re.DOTALL)
WITH_AUTOPATH = TEMPLATE.replace("    loop\n", "    loop\n    autopath @kubernetes\n", 1)


def section(heading: str) -> str:
    return MANUAL.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_every_flag_is_in_the_manual_with_its_default() -> None:
    rows = [(name, default) for names, default in FLAG_ROW.findall(section("Flags")) for name in names.split(", ")]
    assert rows == [(f"`-{flag.name}`", flag.default) for flag in FLAGS]


def test_every_variable_is_in_the_manual() -> None:
    assert set(VARIABLE_ROW.findall(section("The template"))) == set(VARIABLES)


@pytest.mark.parametrize("template", [TEMPLATE, WITH_AUTOPATH], ids=["whole", "with autopath"])
@pytest.mark.parametrize("local_ips", ["169.254.20.10", "169.254.20.10,fd00:169:254::10,10.96.0.10,fd00:10:96::a"])
def test_the_templates_of_the_manual_can_be_served(tmp_path: Path, local_ips: str, template: str) -> None:
    (tmp_path / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    corefile = NodeCorefile(node_flags(tmp_path, local_ips=local_ips), ENVIRONMENT, str(tmp_path / "resolv.conf"))
    absent = FileText("absent")
    rendered = corefile.render(NodeConfigTexts(FileText("base", template), absent, absent))
    assert rendered.problems == ()
    assert all(
        block.settings.get("bind") == tuple(local_ips.split(",")) for block in corefile.settings(rendered.text).blocks
    )
