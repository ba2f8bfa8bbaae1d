"""Server blocks of a release of the chart, for as long as tests need them."""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import yaml

from tests.support.chart.helm import CHART
from tests.support.kube.objects import Object
from tests.support.kube.operator_commands import Operator

_RELEASE: Final = ("--namespace", "kube-system", "--wait")


def chart_server() -> Object:
    """The server block of the chart."""
    (server,) = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["servers"]
    found: Object = server
    return found


@contextmanager
def chart_servers(operator: Operator, directory: Path, servers: Sequence[Object]) -> Iterator[None]:
    """The release has these `servers`; in the end it is rolled back. `directory` takes the file of the values."""
    values = directory / "values.json"
    values.write_text(json.dumps({"servers": servers}))
    with rolled_back(operator):
        operator.run("helm", "upgrade", "topodns", str(CHART), *_RELEASE, "--reuse-values", "--values", str(values))
        await_rollout(operator)
        yield


@contextmanager
def rolled_back(operator: Operator) -> Iterator[None]:
    """In the end the release has the revision of the begin."""
    history = json.loads(operator.run("helm", "history", "topodns", *_RELEASE[:2], "-o", "json"))
    before = str(history[-1]["revision"])
    try:
        yield
    finally:
        operator.run("helm", "rollback", "topodns", before, *_RELEASE)


def await_rollout(operator: Operator) -> None:
    """helm waits for as many Pods as may serve alone, and leaves others of the last revision."""
    operator.run("kubectl", *_RELEASE[:2], "rollout", "status", "deployment/topodns", "--timeout=5m")


def topology_options(operator: Operator, directory: Path, *options: str) -> AbstractContextManager[None]:
    """The release has the chart's server block with these lines in `topology`, as in `chart_servers`."""
    server = chart_server()
    (topology,) = (plugin for plugin in server["plugins"] if plugin["name"] == "topology")
    topology["configBlock"] = "\n".join(options)
    return chart_servers(operator, directory, [server])
