"""Prometheus's own promtool: every alert comes when its trouble does, and none when all is well."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.chart.helm import CHART
from tests.support.chart.promtool import PROMTOOL, promtool

pytestmark = pytest.mark.skipif(
    not PROMTOOL.exists(), reason="NO PROMTOOL HERE: run `make test-chart`, which takes it from Debian's prometheus"
)

GROUPS: list[dict[str, Any]] = yaml.safe_load((CHART / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
EXPRESSIONS: dict[str, str] = {rule["alert"]: rule["expr"] for group in GROUPS for rule in group["rules"]}

SERVER, NODE = 'job="JOB",instance="a"', 'job="NODE_CACHE",instance="n"'
LOCATOR = 'job="locator",instance="l"'
RESPONSES = f"coredns_dns_responses_total{{{SERVER},"
REPLIES = f'coredns_proxy_request_duration_seconds_count{{{SERVER},proxy_name="forward",to="192.0.2.53:53",'
DURATION = f"coredns_dns_request_duration_seconds_bucket{{{SERVER},"
NONE, GROWS, FAST = "0x60", "0+1x60", "0+60x60"  # a minute from one value to the next

WELL: Mapping[str, str] = {
    f"up{{{SERVER}}}": "1x60",
    f'{RESPONSES}rcode="NOERROR"}}': FAST,
    f'{RESPONSES}rcode="SERVFAIL"}}': GROWS,
    f'{DURATION}le="0.008"}}': FAST,
    f'{DURATION}le="4.096"}}': FAST,
    f'{DURATION}le="+Inf"}}': FAST,
    f"coredns_panics_total{{{SERVER}}}": NONE,
    f"coredns_reload_failed_total{{{SERVER}}}": NONE,
    f"topodns_log_lines_dropped_total{{{SERVER}}}": NONE,
    f"topodns_state_synced{{{SERVER}}}": "1x60",
    f"topodns_snapshot_age_seconds{{{SERVER}}}": "_x60",
    f'topodns_snapshot_writes_total{{{SERVER},outcome="written"}}': GROWS,
    f'topodns_snapshot_writes_total{{{SERVER},outcome="failed"}}': NONE,
    f"topodns_state_age_seconds{{{SERVER}}}": "60x60",
    f'topodns_watch_failing{{{SERVER},kind="Node",verb="list",status="403"}}': NONE,
    f'topodns_resync_repairs_total{{{SERVER},kind="Service"}}': NONE,
    f'topodns_left_out_objects{{{SERVER},exported_namespace="shop",kind="Service"}}': NONE,
    f'topodns_policy_invalid{{{SERVER},exported_namespace="shop",exported_service="db"}}': NONE,
    f'topodns_selections_total{{{SERVER},outcome="matched",key="*"}}': FAST,
    f'topodns_selections_total{{{SERVER},outcome="denied",key=""}}': NONE,
    f"topodns_unlocated_queries_total{{{SERVER}}}": GROWS,
    f'topodns_locator_refused_addresses{{{SERVER},kind="NodeLocator",reason="malformed"}}': NONE,
    f"topodns_locator_leader{{{LOCATOR}}}": "1x60",
    f"topodns_locator_lag_seconds{{{LOCATOR}}}": "1x60",
    f'topodns_locator_refusals_total{{{LOCATOR},reason="rbac"}}': NONE,
    f'topodns_locator_refusals_total{{{LOCATOR},reason="api"}}': GROWS,
    f"coredns_forward_healthcheck_broken_total{{{SERVER}}}": NONE,
    f'{REPLIES}rcode="NOERROR"}}': FAST,
    f'{REPLIES}rcode="SERVFAIL"}}': GROWS,
    f'topodns_forward_dropped_total{{{SERVER},reason="total"}}': NONE,
    f"topodns_loop_detected_total{{{SERVER}}}": NONE,
    f"topodns_nodecache_switched_on{{{NODE}}}": "1x60",
    f'coredns_nodecache_setup_errors_total{{{NODE},errortype="iptables"}}': NONE,
    f"topodns_cache_persist_written_total{{{NODE}}}": GROWS,
    f"topodns_cache_persist_failed_total{{{NODE}}}": NONE,
    f"topodns_nodecache_config_in_force{{{NODE}}}": "1x60",
    f'topodns_nodecache_port_sockets{{{NODE},holder="foreign"}}': NONE,
    f'topodns_nodecache_port_sockets{{{NODE},holder="instance"}}': NONE,
    f'topodns_nodecache_repairs_total{{{NODE},what="rules"}}': "0x30 1x30",
    f'topodns_nodecache_upstream_reachable{{{NODE},to="10.96.0.99:53"}}': "1x60",
    f'topodns_nodecache_upstream_reachable{{{NODE},to="192.0.2.53:53"}}': NONE,
}
TROUBLE: Mapping[str, Mapping[str, str]] = {
    "TopodnsDown": {f"up{{{SERVER}}}": NONE},
    "TopodnsErrorsHigh": {f'{RESPONSES}rcode="SERVFAIL"}}': "0+3x60"},
    "TopodnsLatencyHigh": {f'{DURATION}le="0.008"}}': "0+58x60", f'{DURATION}le="4.096"}}': "0+58x60"},
    "TopodnsPanics": {f"coredns_panics_total{{{SERVER}}}": GROWS},
    "TopodnsReloadFailed": {f"coredns_reload_failed_total{{{SERVER}}}": GROWS},
    "TopodnsLogLinesDropped": {f"topodns_log_lines_dropped_total{{{SERVER}}}": GROWS},
    "TopodnsNotSynced": {f"topodns_state_synced{{{SERVER}}}": NONE},
    "TopodnsAnswersFromSnapshot": {
        f"topodns_state_synced{{{SERVER}}}": NONE,
        f"topodns_snapshot_age_seconds{{{SERVER}}}": "60+60x60",
    },
    "TopodnsSnapshotNotWritten": {
        f'topodns_snapshot_writes_total{{{SERVER},outcome="written"}}': NONE,
        f'topodns_snapshot_writes_total{{{SERVER},outcome="failed"}}': GROWS,
    },
    "TopodnsStateOld": {f"topodns_state_age_seconds{{{SERVER}}}": "121x60"},
    "TopodnsWatchFailing": {f'topodns_watch_failing{{{SERVER},kind="Node",verb="list",status="403"}}': "1x60"},
    "TopodnsEventsLost": {f'topodns_resync_repairs_total{{{SERVER},kind="Service"}}': GROWS},
    "TopodnsObjectsLeftOut": {f'topodns_left_out_objects{{{SERVER},exported_namespace="shop",kind="Service"}}': "1x60"},
    "TopodnsPolicyInvalid": {
        f'topodns_policy_invalid{{{SERVER},exported_namespace="shop",exported_service="db"}}': "1x60"
    },
    "TopodnsAnswersDenied": {f'topodns_selections_total{{{SERVER},outcome="denied",key=""}}': GROWS},
    "TopodnsClientsUnlocated": {f"topodns_unlocated_queries_total{{{SERVER}}}": "0+7x60"},
    "TopodnsLocatorAddressesRefused": {
        f'topodns_locator_refused_addresses{{{SERVER},kind="NodeLocator",reason="malformed"}}': "1x60"
    },
    "TopodnsLocatorWithoutLeader": {f"topodns_locator_leader{{{LOCATOR}}}": NONE},
    "TopodnsLocatorLate": {f"topodns_locator_lag_seconds{{{LOCATOR}}}": "31x60"},
    "TopodnsLocatorRefused": {f'topodns_locator_refusals_total{{{LOCATOR},reason="rbac"}}': GROWS},
    "TopodnsUpstreamsDown": {f"coredns_forward_healthcheck_broken_total{{{SERVER}}}": GROWS},
    "TopodnsForwardErrorsHigh": {f'{REPLIES}rcode="SERVFAIL"}}': "0+3x60"},
    "TopodnsForwardDropped": {f'topodns_forward_dropped_total{{{SERVER},reason="total"}}': GROWS},
    "TopodnsLoop": {f"topodns_loop_detected_total{{{SERVER}}}": GROWS},
    "TopodnsNodeCacheOff": {f"topodns_nodecache_switched_on{{{NODE}}}": NONE},
    "TopodnsNodeCacheSetupErrors": {f'coredns_nodecache_setup_errors_total{{{NODE},errortype="iptables"}}': GROWS},
    "TopodnsNodeCacheConfigOld": {f"topodns_nodecache_config_in_force{{{NODE}}}": NONE},
    "TopodnsNodeCachePortShared": {f'topodns_nodecache_port_sockets{{{NODE},holder="foreign"}}': "1x60"},
    "TopodnsNodeCacheTwoInstances": {f'topodns_nodecache_port_sockets{{{NODE},holder="instance"}}': "1x60"},
    "TopodnsNodeCacheRepairs": {f'topodns_nodecache_repairs_total{{{NODE},what="rules"}}': GROWS},
    "TopodnsNodeCacheNotSaved": {
        f"topodns_cache_persist_written_total{{{NODE}}}": NONE,
        f"topodns_cache_persist_failed_total{{{NODE}}}": GROWS,
    },
    "TopodnsNodeCacheUpstreamsDown": {f'topodns_nodecache_upstream_reachable{{{NODE},to="10.96.0.99:53"}}': NONE},
}


def samples(expression: str, number: int) -> dict[str, Any]:
    """That the expression of an alert has so many samples after half an hour and a bit."""
    expected = [{"labels": "{}", "value": number}] if number else []
    return {"expr": f"count({expression})", "eval_time": "40m", "exp_samples": expected}


def course(series: Mapping[str, str], numbers: Mapping[str, int]) -> dict[str, Any]:
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [samples(EXPRESSIONS[alert], number) for alert, number in numbers.items()],
    }


def test_there_is_trouble_for_every_alert() -> None:
    assert TROUBLE.keys() == EXPRESSIONS.keys()
    assert {name for series in TROUBLE.values() for name in series} <= WELL.keys()


def test_promtool_finds_no_fault_in_the_rules() -> None:
    run = promtool("check", "rules", CHART / "alerts.yaml")
    assert run.returncode == 0, run.stdout + run.stderr


def test_each_alert_comes_with_its_trouble_and_none_without(tmp_path: Path) -> None:
    courses = [course(WELL, dict.fromkeys(EXPRESSIONS, 0))]
    courses += [course({**WELL, **trouble}, {alert: 1}) for alert, trouble in TROUBLE.items()]
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": courses}))
    run = promtool("test", "rules", tmp_path / "tests.yaml")
    assert run.returncode == 0, run.stdout + run.stderr
