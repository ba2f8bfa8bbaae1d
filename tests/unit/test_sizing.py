"""The limits that docs/operate/sizing.md counts with are those of the code and of the chart."""

import re

import pytest
import yaml

from bench.memory.fit import fit
from tests.support.documents import DOCUMENTS, ROOT
from topodns.dnsserver.packet_cache.table import MAX_STORED
from topodns.memory.budget import SERVER
from topodns.net.tcp_limits import TcpLimits
from topodns.plugins.cache.settings import DEFAULT_CAPACITY
from topodns.plugins.forward.waiting_limit import MAX_TOTAL
from topodns.query.session import PushLimits

SIZING = " ".join(DOCUMENTS["docs/operate/sizing.md"].split())
VALUES = yaml.safe_load((ROOT / "charts/topodns/values.yaml").read_text(encoding="utf-8"))
MIB = 1 << 20

CAPS = {
    rf"its capacity by default, {DEFAULT_CAPACITY:,} answers and as many denials",
    rf"7 MB; never more than {SERVER.answers // MIB} MiB and {SERVER.denials // MIB} MiB",
    rf"{MAX_STORED:,} of each socket, and so 23 MB; never more than {SERVER.ready_made // MIB} MiB of all",
    rf"up to {TcpLimits().unread // MIB} MiB of replies that they do not read",
    rf"{MAX_TOTAL:,} questions that wait for an upstream",
    rf"never more than its option `memory`, {PushLimits().memory // MIB} MiB",
}
"""As the document has them; what is measured in between is not looked at."""


@pytest.mark.parametrize("cap", sorted(CAPS))
def test_a_cap_is_the_one_of_the_code(cap: str) -> None:
    assert cap in SIZING


def test_there_is_no_cap_in_mib_that_is_not_looked_at() -> None:
    looked_at = sorted(number for cap in CAPS for number in re.findall(r"([\d,.]+) MiB", cap))
    assert sorted(re.findall(r"([\d,.]+) MiB", SIZING)) == looked_at


def test_the_sizing_of_tcp_equals_the_limits_of_the_listeners() -> None:
    assert TcpLimits().unread == SERVER.unread


def test_requests_and_limits_are_those_of_the_chart() -> None:
    server, node_cache = VALUES["resources"], VALUES["nodeCache"]["resources"]
    assert f"The chart's {server['requests']['memory']} are enough for up to" in SIZING
    assert f"The chart's {server['limits']['memory']} are enough for the largest" in SIZING
    assert "cpu" not in server["limits"]
    assert f"| {server['requests']['cpu']} are 2,000 questions a second" in SIZING
    assert f"The chart asks for {node_cache['requests']['memory']} and sets no limit" in SIZING
    assert "limits" not in node_cache
    assert f"The {node_cache['requests']['cpu']} of the chart are 500 questions" in SIZING


def test_the_defaults_of_the_autoscaler_are_those_of_the_chart() -> None:
    scaled = VALUES["autoscaler"]
    assert f"The defaults, {scaled['nodesPerReplica']} and {scaled['coresPerReplica']}, are those" in SIZING


# The formulas that `make bench-memory` fits to its measurements.


def test_a_formula_that_is_exact_is_found() -> None:
    measured = [
        ({"Nodes": nodes, "Pods": pods}, 55.0 + 0.002 * nodes + 0.0007 * pods)
        for nodes, pods in ((0, 0), (5_000, 0), (1_000, 150_000), (10, 20))
    ]
    formula = fit(("Nodes", "Pods"), measured)
    assert formula.base == pytest.approx(55.0)
    assert formula.each == pytest.approx({"Nodes": 0.002, "Pods": 0.0007})
    assert formula.of({"Pods": 10_000}) == pytest.approx(62.0)


def test_an_outlier_leaves_the_formula_between_the_measurements() -> None:
    formula = fit(("Pods",), [({}, 50.0), ({}, 52.0), ({"Pods": 10}, 61.0)])
    assert formula.base == pytest.approx(51.0)
    assert formula.each == pytest.approx({"Pods": 1.0})


def test_things_that_only_grow_together_cannot_be_separated() -> None:
    with pytest.raises(ValueError, match="differ in each thing by itself"):
        fit(("Services", "slices"), [({"Services": n, "slices": n}, 50.0 + n) for n in (1, 2, 3)])
