"""docs/operate/alerts.md has a runbook for each alert: its effect, how long that lasts, where to look, what to do."""

import re

import pytest
import yaml

from tests.support.documents import DOCUMENTS, ROOT

DOCUMENT = DOCUMENTS["docs/operate/alerts.md"]
GROUPS = yaml.safe_load((ROOT / "charts/topodns/alerts.yaml").read_text(encoding="utf-8"))["groups"]
ALERTS = [rule["alert"] for group in GROUPS for rule in group["rules"]]
RUNBOOKS = dict(re.findall(r"^### (\w+)\n\n(.*?)(?=^##|\Z)", DOCUMENT, re.MULTILINE | re.DOTALL))
ITEM = re.compile(r"^- \*\*([\w ]+)\*\*: (.+?)(?=\n- |\n*\Z)", re.MULTILINE | re.DOTALL)
HELPERS = re.findall(r"^(\w+)\(\) \{", DOCUMENT, re.MULTILINE)
"""The functions of the shell that the page defines for its commands."""


def test_every_alert_has_a_runbook_in_the_order_of_the_chart() -> None:
    """Its heading's anchor is the alert's name in lower case, as the chart's `runbook_url` has it."""
    assert list(RUNBOOKS) == ALERTS


@pytest.mark.parametrize("alert", ALERTS)
def test_a_runbook_has_the_effect_its_duration_what_to_look_at_and_what_to_do(alert: str) -> None:
    assert [head for head, _ in ITEM.findall(RUNBOOKS[alert])] == ["Effect", "How long", "Look", "Do"]


@pytest.mark.parametrize("alert", ALERTS)
def test_a_runbook_has_a_command_a_metric_or_a_file_to_look_at(alert: str) -> None:
    look = dict(ITEM.findall(RUNBOOKS[alert]))["Look"]
    commands = "|".join([*HELPERS, "kubectl", "ss", "dig", "df"])
    assert HELPERS
    assert re.search(rf"`(?:(?:{commands})\b|topodns_\w+|/etc/)", look), look
