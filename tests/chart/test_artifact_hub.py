"""What Artifact Hub shows of the chart: annotations by its rules (docs/helm_annotations.md of artifacthub/hub)."""

import re
import tomllib
from typing import Any

import yaml

from tests.support.chart.artifact_hub import chart_yaml
from tests.support.chart.helm import CHART, ROOT, rendered
from tests.support.chart.matrix import MATRIX

TEXT = (CHART / "Chart.yaml").read_text(encoding="utf-8")
ANNOTATIONS: dict[str, str] = yaml.safe_load(TEXT)["annotations"]


def listed(name: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = yaml.safe_load(ANNOTATIONS[f"artifacthub.io/{name}"])
    return found


def test_they_equal_the_output_of_make_manifests() -> None:
    assert chart_yaml() == TEXT


def test_every_annotation_is_one_that_artifact_hub_reads() -> None:
    known = ("category", "changes", "crds", "images", "license", "links")
    assert set(ANNOTATIONS) == {f"artifacthub.io/{name}" for name in known}
    assert ANNOTATIONS["artifacthub.io/category"] == "networking"
    assert all(isinstance(text, str) for text in ANNOTATIONS.values())


def test_the_license_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert ANNOTATIONS["artifacthub.io/license"] == project["license"]


def test_the_changes_are_the_entries_of_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n## ")[2].partition("\n## ")[0]
    entries = re.findall(r"^- \*\*(.+?)\*\*", changelog, re.MULTILINE | re.DOTALL)
    changes = listed("changes")
    assert len(changes) == len(entries) > 5
    for change, subject in zip(changes, entries, strict=True):
        assert change.keys() == {"kind", "description"}
        assert change["kind"] in ("added", "changed", "deprecated", "removed", "fixed", "security")
        assert change["description"].startswith(subject)
        assert not re.search(r"\*\*|\]\(|\n", change["description"])


def test_the_images_are_those_that_the_chart_may_run() -> None:
    def images(values: dict[str, Any]) -> set[str]:
        pods = [each["spec"]["template"]["spec"] for each in rendered(values) if "template" in each.get("spec", {})]
        return {each["image"] for pod in pods for each in (*pod["containers"], *pod.get("initContainers", ()))}

    own = ("as it is", "locators", "dual-stack", "cluster-proportional")
    assert {each["image"] for each in listed("images")} == set().union(*(images(dict(MATRIX[name])) for name in own))
    assert all(each.keys() == {"name", "image"} for each in listed("images"))


def test_the_kinds_are_those_that_the_chart_installs() -> None:
    kinds = [each for each in rendered(MATRIX["locators"]) if each["kind"] == "CustomResourceDefinition"]
    assert [(each["kind"], each["version"], each["name"]) for each in listed("crds")] == [
        (each["spec"]["names"]["kind"], each["spec"]["versions"][0]["name"], each["metadata"]["name"]) for each in kinds
    ]
    assert all(each["displayName"] and each["description"] for each in listed("crds"))


def test_links_have_a_name_and_a_url_and_none_is_of_a_place_that_is_not_there_yet() -> None:
    for link in listed("links"):
        assert link.keys() == {"name", "url"}
        assert link["url"].startswith("https://")
        assert "topodns" not in link["url"]
