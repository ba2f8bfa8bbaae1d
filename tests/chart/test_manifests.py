"""The plain manifests are what the chart renders, and kustomize builds them."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.kubelab.programs import programs
from tests.support.chart.helm import CHART, CLUSTER_DNS, ROOT, Object, rendered
from tests.support.chart.manifests import BASES, FOLDER, Base, everything, files
from tests.support.documents import yaml_block

by_name = pytest.mark.parametrize("base", BASES, ids=[base.name for base in BASES])
HELMS_OWN = ("app.kubernetes.io/managed-by", "helm.sh/chart", "helm.sh/resource-policy", "checksum/config")


@by_name
def test_a_base_equals_the_output_of_make_manifests(base: Base) -> None:
    folder = FOLDER / base.name
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert written == files(base)


def test_make_manifests_writes_all_bases_the_dashboards_and_the_readme() -> None:
    folders = {FOLDER / base.name for base in BASES}
    written = {path.parent for path in everything() if path.name != "README.md"}
    assert written == {*folders, CHART / "dashboards"}
    assert {path for path in FOLDER.iterdir() if path.is_dir()} == folders


def without_helms_own(each: Object) -> Object:
    """The object as it is without helm."""
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


with_kubectl = pytest.mark.skipif(
    not programs()["kubectl"].exists(), reason="NO KUBECTL HERE: run `make kubelab`, which builds it"
)


@by_name
@with_kubectl
def test_kustomize_builds_it(base: Base) -> None:
    assert {(each["kind"], each["metadata"]["name"]) for each in kustomized(FOLDER / base.name)} == {
        (each["kind"], each["metadata"]["name"]) for each in rendered(base.values)
    }


@with_kubectl
def test_kustomize_builds_the_overlay_of_the_manual_as_it_is_printed(tmp_path: Path) -> None:
    (tmp_path / "topodns").symlink_to(ROOT)
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text(yaml_block("docs/operate/install.md", "Without helm"))
    built = {(each["kind"], each["metadata"]["name"]): each for each in kustomized(overlay)}
    (container,) = built["Deployment", "topodns"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/topodns:0.1.0"
    assert built["Service", "kube-dns"]["spec"]["clusterIP"] == CLUSTER_DNS


def kustomized(folder: Path) -> list[Object]:
    command = [str(programs()["kubectl"]), "kustomize", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return list(yaml.safe_load_all(run.stdout))
