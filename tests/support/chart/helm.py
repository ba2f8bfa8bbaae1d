"""The chart, rendered by the real helm: built once into tests/kubelab's cache, under its version.

`python -m tests.support.chart.helm` builds it where it is missing, or says why it cannot.
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.kubelab.cache import filling
from tests.kubelab.programs import KUBERNETES, Build, make_build

ROOT: Final = Path(__file__).parents[3]
CHART: Final = ROOT / "charts/topodns"
RELEASE, NAMESPACE = "topodns", "kube-system"
CLUSTER_DNS: Final = "10.96.0.10"  # kubeadm's

Object = dict[str, Any]
Values = Mapping[str, Any]

_MODULE: Final = "helm.sh/helm/v3"
# What helm takes for the cluster's version where it asks none: that of the lab.
_MINOR: Final = KUBERNETES.version.split(".")[1] if "." in KUBERNETES.version else "0"
_FLAGS: Final = " ".join(
    (
        f"-X {_MODULE}/internal/version.version=vVERSION",
        f"-X {_MODULE}/pkg/chartutil.k8sVersionMajor=1",
        f"-X {_MODULE}/pkg/chartutil.k8sVersionMinor={_MINOR}",
    )
)
HELM: Final = Build("helm", _MODULE, {"helm": f"{_MODULE}/cmd/helm"}, _FLAGS)


class Refused(Exception):
    """helm does not render these values; says why."""


def build_helm() -> None:
    """With the machine's Go or the one of PyPI. Raises OSError or CalledProcessError."""
    if HELM.missing:
        with filling():
            make_build(HELM)


def helm(*words: str | Path) -> list[str]:
    """The command that runs helm, for subprocess."""
    return [str(HELM.folder / "helm"), *map(str, words)]


def rendered_text(values: Values, *words: str) -> str:
    """The objects that helm renders of the chart with these values, as text. Raises Refused."""
    command = helm("template", RELEASE, CHART, "--namespace", NAMESPACE, "--values", "-", *words)
    run = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=False)
    if run.returncode:
        raise Refused(run.stderr.strip())
    return run.stdout


def rendered(values: Values, *words: str) -> list[Object]:
    """The objects of the chart with these values, its tests left out. Raises Refused.

    Where the values give the cluster DNS no address, which helm does not find without a cluster, it has CLUSTER_DNS.
    """
    text = rendered_text(_addressed(values), "--skip-tests", *words)
    return [each for each in yaml.safe_load_all(text) if each]


def _addressed(values: Values) -> Values:
    service = values.get("service", {})
    makes_none = values.get("mode", "replace") == "beside" or service.get("create") is False
    if makes_none or service.get("clusterIP") or service.get("clusterIPs"):
        return values
    return {**values, "service": {**service, "clusterIP": CLUSTER_DNS}}


if __name__ == "__main__":
    try:
        build_helm()
    except (OSError, subprocess.CalledProcessError) as problem:
        print(f"no helm could be built here: {problem}")
