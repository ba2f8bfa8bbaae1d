"""The annotations in Chart.yaml that Artifact Hub shows, from CHANGELOG.md and what the chart renders.

https://artifacthub.io/docs/topics/annotations/helm/ has their form. Links are to what the chart implements: there is no
address of the project itself until it is published somewhere.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from tests.support.chart.helm import CHART, ROOT, Object, rendered
from tests.support.chart.readable_yaml import readable_yaml

_PREFIX: Final = "artifacthub.io/"
_LINKS: Final = {
    "Kubernetes DNS-Based Service Discovery": "https://github.com/kubernetes/dns/blob/master/docs/specification.md",
    "Corefile": "https://coredns.io/manual/configuration/",
    "NodeLocal DNSCache": "https://kubernetes.io/docs/tasks/administer-cluster/nodelocaldns/",
}
_ALL_PARTS: Final[dict[str, Any]] = {
    "autoscaler": {"enabled": True},
    "nodeCache": {"enabled": True},
    "locator": {"enabled": True},
}
_SECTION: Final = re.compile(r"^### (\w+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_MARKS: Final = re.compile(r"\*\*|\[([^]]*)\]\([^)]*\)")


def chart_yaml() -> str:
    """The text of Chart.yaml: what is written by hand, and the annotations anew."""
    head = (CHART / "Chart.yaml").read_text(encoding="utf-8").partition("# Written by")[0]
    objects = rendered(_ALL_PARTS)
    lists = {
        "changes": list(_changes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))),
        "crds": [_crd(each) for each in objects if each["kind"] == "CustomResourceDefinition"],
        "images": [{"name": name, "image": image} for name, image in sorted(_images(objects).items())],
        "links": [{"name": name, "url": url} for name, url in _LINKS.items()],
    }
    annotations = {
        "category": "networking",
        "license": "Apache-2.0",
        **{name: readable_yaml(found) for name, found in lists.items()},
    }
    written = readable_yaml({"annotations": {_PREFIX + name: text for name, text in annotations.items()}})
    return f"{head}# Written by `make manifests`, from CHANGELOG.md and the chart, for Artifact Hub.\n{written}"


def _changes(changelog: str) -> Iterator[dict[str, str]]:
    """Of each entry of the topmost release its kind, and its words up to the first `:`, `;` or end of a sentence."""
    release = re.split(r"^## ", changelog, flags=re.MULTILINE)[1]
    for kind, entries in _SECTION.findall(release):
        for entry in re.split(r"^- ", entries, flags=re.MULTILINE)[1:]:
            text = " ".join(_MARKS.sub(lambda mark: mark[1] or "", entry).split())
            yield {"kind": kind.lower(), "description": re.split(r"[:;.](?:\s|$)| \(", text)[0]}


def _crd(definition: Object) -> dict[str, str]:
    version = definition["spec"]["versions"][0]
    return {
        "kind": definition["spec"]["names"]["kind"],
        "version": version["name"],
        "name": definition["metadata"]["name"],
        "displayName": definition["spec"]["names"]["kind"],
        "description": version["schema"]["openAPIV3Schema"]["description"].split(". ")[0].rstrip("."),
    }


def _images(objects: list[Object]) -> dict[str, str]:
    """By the name of the repository's last part."""
    pods = (each["spec"]["template"]["spec"] for each in objects if each["kind"] in ("Deployment", "DaemonSet"))
    images = {container["image"] for pod in pods for container in pod["containers"]}
    return {image.rpartition(":")[0].rpartition("/")[2]: image for image in images}
