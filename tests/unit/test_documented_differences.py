"""The differences that tests/differential accepts are those that the documents list."""

import re
from collections import Counter
from pathlib import Path

from tests.differential.differences import DIFFERENCES
from topodns.plugins.order import ORDER
from topodns.plugins.plugin import load

DOCUMENT = Path(__file__).parents[2] / "docs/reference/differences-from-coredns.md"
ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)


def test_every_difference_in_replies_is_documented_with_its_reason_and_no_other_one() -> None:
    section = DOCUMENT.read_text(encoding="utf-8").partition("\n## Replies\n")[2].partition("\n## ")[0]
    rows = [row for row in ROW.findall(section) if row[0] != "difference"]
    assert rows
    assert dict(rows) == {difference.name: difference.reason for difference in DIFFERENCES}


def test_all_directives_that_add_up_are_named_where_the_others_are_refused_a_second_time() -> None:
    for name in ("reference/differences-from-coredns.md", "migrate/from-coredns.md", "reference/corefile.md"):
        text = (DOCUMENT.parents[1] / name).read_text(encoding="utf-8")
        (sentence,) = re.findall(r"(?:but\sfor|several) ((?:`\w+`,?\s*(?:and\s+)?){4,})", text)
        named = set(re.findall(r"`(\w+)`", sentence))
        assert named == {directive for directive in ORDER if load(directive).adds_up}, name


def test_every_difference_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(each.name for each in DIFFERENCES).items() if count > 1] == []
