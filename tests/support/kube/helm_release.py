"""helm against a lab: a release of the chart with the image of the working tree."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

from tests.kubelab.lab import Lab
from tests.support.chart.helm import CHART, Values, helm
from tests.support.kube.image import TOPODNS_IMAGE

_PATIENCE: Final = "120s"


class Release:
    """One release in one namespace. `directory` is helm's own, for its caches and the values."""

    def __init__(self, lab: Lab, directory: Path, name: str, namespace: str) -> None:
        self._lab, self._directory = lab, directory
        self.name, self.namespace = name, namespace

    def upgrade(self, values: Values, patience: str = _PATIENCE) -> "subprocess.CompletedProcess[str]":
        """`helm upgrade --install --wait` with these values and no others, whether it succeeds or not."""
        repository, _, tag = TOPODNS_IMAGE.rpartition(":")
        file = self._directory / "values.json"
        file.write_text(json.dumps({**values, "image": {"repository": repository, "tag": tag}}))
        wait = ("--install", "--wait", "--timeout", patience, "--values", file)
        return self._run("upgrade", self.name, CHART, *wait)

    def install(self, values: Values) -> None:
        """`upgrade`, which has to succeed."""
        run = self.upgrade(values)
        assert run.returncode == 0, run.stderr

    def test(self) -> "subprocess.CompletedProcess[str]":
        """`helm test`, which prints the log of the Pod to stderr and keeps only a Pod that failed."""
        return self._run("test", self.name, "--timeout", _PATIENCE)

    def remove(self) -> None:
        run = self._run("uninstall", self.name, "--wait", "--timeout", _PATIENCE)
        assert run.returncode == 0, run.stderr

    def _run(self, *words: Any) -> "subprocess.CompletedProcess[str]":
        own = ("--kubeconfig", self._lab.kubeconfig, "--namespace", self.namespace)
        homes = {f"HELM_{name}_HOME": str(self._directory / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        command = helm(*own, *words)
        return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **homes})
