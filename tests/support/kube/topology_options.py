"""Options of the directive `topology` in a release of the chart, for as long as tests need them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import yaml

from tests.support.chart.helm import CHART
from tests.support.kube.operator_commands import Operator

_RELEASE: Final = ("--namespace", "kube-system", "--wait")


@contextmanager
def topology_options(operator: Operator, directory: Path, *options: str) -> Iterator[None]:
    """The release has the chart's `servers` with these lines in `topology`; in the end it is rolled back.

    `directory` takes the file of the values.
    """
    servers = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["servers"]
    (topology,) = (plugin for plugin in servers[0]["plugins"] if plugin["name"] == "topology")
    topology["configBlock"] = "\n".join(options)
    values = directory / "values.json"
    values.write_text(json.dumps({"servers": servers}))
    before = _revision(operator)
    operator.run("helm", "upgrade", "topodns", str(CHART), *_RELEASE, "--reuse-values", "--values", str(values))
    try:
        yield
    finally:
        operator.run("helm", "rollback", "topodns", before, *_RELEASE)


def _revision(operator: Operator) -> str:
    history = json.loads(operator.run("helm", "history", "topodns", *_RELEASE[:2], "-o", "json"))
    return str(history[-1]["revision"])
