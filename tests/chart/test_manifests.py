"""The plain manifests are what the chart renders, and kustomize builds them."""

import re
import subprocess
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from tests.support.chart.helm import CHART, CLUSTER_DNS, ROOT, Object, rendered
from tests.support.chart.manifests import (
    COMPONENTS,
    FOLDER,
    PARTS,
    SERVER,
    Part,
    everything,
    files,
    values_of,
    write_kustomization,
)
from tests.support.chart.tools import KUSTOMIZE
from tests.support.documents import yaml_block

HELMS_OWN = ("app.kubernetes.io/managed-by", "helm.sh/chart", "helm.sh/resource-policy", "checksum/config")
SELECTIONS = [chosen for count in range(len(COMPONENTS) + 1) for chosen in combinations(COMPONENTS, count)]

by_name = pytest.mark.parametrize("part", PARTS, ids=[part.name for part in PARTS])
by_selection = pytest.mark.parametrize(
    "chosen", SELECTIONS, ids=[" ".join(part.name for part in (SERVER, *chosen)) for chosen in SELECTIONS]
)
with_kustomize = pytest.mark.skipif(
    bool(KUSTOMIZE.missing), reason="NO KUSTOMIZE HERE: run `make test-chart`, which builds it where Go is"
)


@by_name
def test_a_folder_equals_the_output_of_make_manifests(part: Part) -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in (FOLDER / part.name).iterdir()}
    assert written == files(part)


def test_make_manifests_writes_all_folders_the_dashboards_the_readme_and_the_annotations() -> None:
    folders = {FOLDER / part.name for part in PARTS}
    assert {path.parent for path in everything()} == {*folders, CHART, CHART / "dashboards"}
    assert {path.name for path in everything() if path.parent == CHART} == {"README.md", "Chart.yaml"}
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


def by_kind_and_name(objects: Sequence[Object]) -> dict[tuple[str, str], Object]:
    found = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    assert len(found) == len(objects)
    return found


@by_selection
@with_kustomize
def test_kustomize_builds_the_objects_of_the_chart(chosen: Sequence[Part], tmp_path: Path) -> None:
    write_kustomization(tmp_path, (SERVER, *chosen))
    built = kustomized(tmp_path)
    expected = [without_helms_own(each) for each in rendered(values_of((SERVER, *chosen)))]
    assert by_kind_and_name(built) == by_kind_and_name(expected)


@pytest.mark.parametrize("part", COMPONENTS[:-1], ids=[part.name for part in COMPONENTS[:-1]])
@with_kustomize
def test_a_component_without_the_server_has_the_objects_that_the_chart_has_without_it(
    part: Part, tmp_path: Path
) -> None:
    """The server may be in another overlay; a patch for it then changes nothing."""
    alone = {**part.values, "deployment": {"enabled": False}, "admissionPolicy": {"enabled": False}}
    expected = [without_helms_own(each) for each in rendered(alone)]
    write_kustomization(tmp_path, [part])
    assert by_kind_and_name(kustomized(tmp_path)) == by_kind_and_name(expected)


@with_kustomize
def test_kustomize_builds_the_overlay_of_the_manual_as_it_is_printed(tmp_path: Path) -> None:
    built = printed(tmp_path, "docs/operate/install.md", "Without helm")
    (container,) = built["Deployment", "topodns"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/topodns:0.1.0"
    assert built["Service", "kube-dns"]["spec"]["clusterIP"] == CLUSTER_DNS


@with_kustomize
def test_an_overlay_may_leave_the_cluster_s_own_service_as_it_is(tmp_path: Path) -> None:
    (patch,) = re.findall(
        r"gets `patch:\s+'(\{[^`]*\})'`", (ROOT / "docs/operate/install.md").read_text(encoding="utf-8")
    )
    write_kustomization(tmp_path, [SERVER])
    overlay = yaml.safe_load((tmp_path / "kustomization.yaml").read_text())
    overlay["patches"] = [{"target": {"kind": "Service", "name": "kube-dns"}, "patch": patch}]
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    of_the_chart = rendered({**SERVER.values, "service": {"create": False}})
    assert by_kind_and_name(kustomized(tmp_path)) == by_kind_and_name(
        [without_helms_own(each) for each in of_the_chart]
    )


@with_kustomize
def test_kustomize_builds_the_overlay_of_the_node_cache_s_manual_as_it_is_printed(tmp_path: Path) -> None:
    built = printed(tmp_path, "docs/operate/node-cache.md", "Install")
    (container,) = built["DaemonSet", "node-local-dns"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/topodns:0.1.0"
    assert {"name": "LOCAL_ADDRESSES", "value": "169.254.20.10,10.100.0.10"} in container["env"]
    assert ("Deployment", "topodns") not in built


def printed(folder: Path, document: str, heading: str) -> dict[tuple[str, str], Object]:
    """The objects of the overlay in this chapter, which is at the root of the repository or beside it."""
    (folder / "topodns").symlink_to(ROOT)
    root = folder / "root"
    root.mkdir()
    (root / "config").symlink_to(ROOT / "config")
    (root / "kustomization.yaml").write_text(yaml_block(document, heading))
    return by_kind_and_name(kustomized(root))


def kustomized(folder: Path) -> list[Object]:
    command = [str(KUSTOMIZE.folder / "kustomize"), "build", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return list(yaml.safe_load_all(run.stdout))
