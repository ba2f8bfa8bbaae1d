"""The plain manifests are what the chart renders, and kustomize builds them."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.kubelab.programs import programs
from tests.support.chart.helm import CHART, Object, rendered
from tests.support.chart.manifests import BASES, FOLDER, Base, everything, files

by_name = pytest.mark.parametrize("base", BASES, ids=[base.name for base in BASES])
HELMS_OWN = ("app.kubernetes.io/managed-by", "helm.sh/chart", "helm.sh/resource-policy", "checksum/config")


@by_name
def test_a_base_is_what_make_manifests_writes(base: Base) -> None:
    folder = FOLDER / base.name
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert written == files(base)


def test_make_manifests_writes_all_bases_the_dashboards_and_the_readme() -> None:
    folders = {FOLDER / base.name for base in BASES}
    written = {path.parent for path in everything() if path.name != "README.md"}
    assert written == {*folders, CHART / "dashboards"}
    assert {path for path in FOLDER.iterdir() if path.is_dir()} == folders


def without_helms_own(each: Object) -> Object:
    """The object as one that nobody installs with helm has it."""
    text = yaml.safe_dump(each).splitlines()
    kept = "\n".join(line for line in text if not line.strip().startswith(HELMS_OWN))
    found: Object = yaml.safe_load(kept)
    for metadata in (found["metadata"], found.get("spec", {}).get("template", {}).get("metadata", {})):
        if "annotations" in metadata and not metadata["annotations"]:
            del metadata["annotations"]
    return found


@by_name
def test_a_base_has_the_objects_of_the_chart(base: Base) -> None:
    texts = [text for name, text in files(base).items() if name != "kustomization.yaml"]
    objects = [each for text in texts for each in yaml.safe_load_all(text)]
    expected = [without_helms_own(each) for each in rendered(base.values)]
    assert len(objects) == len(expected)
    assert all(each in expected for each in objects)


@by_name
@pytest.mark.skipif(not programs()["kubectl"].exists(), reason="NO KUBECTL HERE: run `make kubelab`, which builds it")
def test_kustomize_builds_it(base: Base, tmp_path: Path) -> None:
    """With an overlay that names the image and an address, as docs/install.md shows it."""
    run = subprocess.run(
        [str(programs()["kubectl"]), "kustomize", str(FOLDER / base.name)], capture_output=True, text=True, check=True
    )
    built = list(yaml.safe_load_all(run.stdout))
    assert {(each["kind"], each["metadata"]["name"]) for each in built} == {
        (each["kind"], each["metadata"]["name"]) for each in rendered(base.values)
    }
