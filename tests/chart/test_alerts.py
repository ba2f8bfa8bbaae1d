"""The alerts ask for metrics that are there, and each has its text in docs/operate/alerts.md."""

import re
from typing import Any

import pytest
import yaml

from tests.support.chart.helm import CHART, ROOT, rendered
from topodns.hostnet.commands import ErrorKind

GROUPS: list[dict[str, Any]] = yaml.safe_load((CHART / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
ALERTS: dict[str, dict[str, Any]] = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}
SECTIONS = dict(
    re.findall(
        r"^### (\w+)\n\n(.*?)(?=^##|\Z)", (ROOT / "docs/operate/alerts.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
)
METRIC = re.compile(r"\b((?:coredns|topodns)_\w+?)(?:_bucket|_count|_sum)?\{([^}]*)\}")
ROW = re.compile(r"^\| `((?:coredns|topodns)_\w+)` \| (\w+) \| ([\w, ]*)\|", re.MULTILINE)
METRICS = "".join(
    (ROOT / "docs" / name).read_text("utf-8") for name in ("reference/metrics.md", "operate/node-cache.md")
)
DOCUMENTED = {name: labels for name, _, labels in ROW.findall(METRICS)}
RULES: dict[str, Any] = {"prometheus": {"rules": {"enabled": True}}}
NODE_CACHE: dict[str, Any] = {"nodeCache": {"enabled": True, "intercept": False}}
ALL: dict[str, Any] = {**RULES, **NODE_CACHE, "locator": {"enabled": True}}


def groups(values: dict[str, Any]) -> list[dict[str, Any]]:
    (rule,) = (each for each in rendered(values) if each["kind"] == "PrometheusRule")
    found: list[dict[str, Any]] = rule["spec"]["groups"]
    return found


def test_every_alert_has_a_text_and_every_text_an_alert() -> None:
    assert SECTIONS.keys() == ALERTS.keys()


@pytest.mark.parametrize("alert", ALERTS)
def test_a_text_begins_with_the_severity(alert: str) -> None:
    assert SECTIONS[alert].startswith(f"*{ALERTS[alert]['labels']['severity'].capitalize()}.* ")


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_asks_for_metrics_that_are_there_by_labels_that_they_have(alert: str) -> None:
    expression = ALERTS[alert]["expr"]
    asked = METRIC.findall(expression)
    assert asked or expression.startswith("absent(up{")
    for name, selector in asked:
        assert set(re.findall(r"(\w+)=", selector)) - {"job"} <= labels_of(name), name
    grouped = {label.strip() for labels in re.findall(r"by \(([\w, ]+)\)", expression) for label in labels.split(",")}
    shown = set(re.findall(r"\$labels\.(\w+)", ALERTS[alert]["annotations"]["summary"]))
    assert grouped | shown <= {"instance", "le"}.union(*(labels_of(name) for name, _ in asked))
    assert not grouped or shown <= grouped


def labels_of(metric: str) -> set[str]:
    return {label.strip() for label in DOCUMENTED[metric].split(",")}


def test_the_kinds_of_setup_errors_are_explained() -> None:
    assert all(f"`{kind.value}`" in SECTIONS["TopodnsNodeCacheSetupErrors"] for kind in ErrorKind)


def test_alerts_are_about_the_jobs_that_are_scraped() -> None:
    text = str(groups(ALL))
    assert 'job="topodns-metrics"' in text
    assert 'job="node-local-dns"' in text
    assert "JOB" not in text
    assert "NODE_CACHE" not in text


def test_alerts_are_rendered_for_installed_parts_only() -> None:
    assert {group["name"] for group in groups(ALL)} == {group["name"] for group in GROUPS}
    all_but = {group["name"] for group in GROUPS} - {group["name"] for group in groups(RULES)}
    assert all_but == {"topodns.node-cache", "topodns.locator"}
    alone = groups({**RULES, **NODE_CACHE, "deployment": {"enabled": False}})
    assert [group["name"] for group in alone] == ["topodns.node-cache"]


def test_an_alert_links_to_its_text_where_it_is_known() -> None:
    assert "runbook_url" not in str(groups(ALL))
    linked = groups({"prometheus": {"rules": {"enabled": True, "runbookUrl": "https://example.com/alerts"}}})
    (down,) = (rule for group in linked for rule in group["rules"] if rule["alert"] == "TopodnsDown")
    assert down["annotations"]["runbook_url"] == "https://example.com/alerts#topodnsdown"
