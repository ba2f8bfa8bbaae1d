"""The bill of materials: what CycloneDX 1.5 requires of it, and that nothing of the lock is missing."""

import json
import re
from datetime import datetime
from pathlib import Path
from uuid import UUID

import pytest

from release.lock import read_lock
from release.sbom import IMAGE_LOCK, IMAGE_PYTHON, LOCK, bill_of_materials, write_sbom
from release.source import VERSION

PINS = dict(re.findall(r"^([\w.-]+)==(\S+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE))
BILL = bill_of_materials(LOCK)


def test_it_has_the_fields_that_cyclonedx_requires() -> None:
    assert (BILL["bomFormat"], BILL["specVersion"], BILL["version"]) == ("CycloneDX", "1.5", 1)
    assert UUID(BILL["serialNumber"].removeprefix("urn:uuid:"))
    assert datetime.fromisoformat(BILL["metadata"]["timestamp"]).tzinfo is not None
    for component in [BILL["metadata"]["component"], *BILL["components"]]:
        assert component["type"] in {"application", "library"}
        assert component["name"]
        assert component["purl"] == component["bom-ref"] == f"pkg:pypi/{component['name']}@{component['version']}"


def test_it_is_of_this_version() -> None:
    assert BILL["metadata"]["component"]["version"] == VERSION


def test_the_bill_of_materials_has_installed_libraries_and_no_build_tools() -> None:
    assert {each["name"]: each["version"] for each in BILL["components"]} == {
        name: version for name, version in PINS.items() if name != "setuptools"
    }


def test_the_image_for_pods_has_a_bill_of_its_own() -> None:
    bill = bill_of_materials(IMAGE_LOCK)
    names = {each["name"] for each in bill["components"]}
    assert names == {each.name for each in read_lock(IMAGE_LOCK) if each.installed_by(IMAGE_PYTHON)}
    assert "setuptools" not in names
    assert "kubernetes" not in names
    assert bill["serialNumber"] != BILL["serialNumber"]


def test_each_library_has_the_hashes_of_the_lock() -> None:
    written = LOCK.read_text(encoding="utf-8").count("--hash=sha256:")
    assert sum(len(each.hashes) for each in read_lock(LOCK)) == written
    for component in BILL["components"]:
        ((reference),) = component["externalReferences"]
        assert reference["type"] == "distribution"
        assert reference["hashes"]
        assert all(each["alg"] == "SHA-256" and len(each["content"]) == 64 for each in reference["hashes"])


def test_each_library_says_its_license() -> None:
    assert [each["name"] for each in BILL["components"] if not each.get("licenses")] == []
    for each in BILL["components"]:
        (license_text,) = each["licenses"]
        assert license_text.get("expression") or license_text["license"]["name"], each["name"]


def test_every_library_is_wanted_by_another_or_by_topodns() -> None:
    references = {each["bom-ref"] for each in [BILL["metadata"]["component"], *BILL["components"]]}
    wanted = {each["ref"]: set(each["dependsOn"]) for each in BILL["dependencies"]}
    assert wanted.keys() == references
    assert set().union(*wanted.values()) == references - {BILL["metadata"]["component"]["bom-ref"]}


def test_the_requirements_of_topodns_are_those_of_pyproject() -> None:
    (own,) = [each for each in BILL["dependencies"] if each["ref"] == f"pkg:pypi/topodns@{VERSION}"]
    pyproject = LOCK.with_name("pyproject.toml").read_text(encoding="utf-8")
    named = re.findall(r'^  "([\w-]+)>=\S+", +# topodns\.', pyproject, re.MULTILINE)
    assert {each.partition("/")[2].partition("@")[0] for each in own["dependsOn"]} == {name.lower() for name in named}


def test_the_same_lock_and_time_make_the_same_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    for name in ("first", "second"):
        write_sbom(tmp_path / name, LOCK)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert json.loads((tmp_path / "first").read_text())["metadata"]["timestamp"] == "2001-09-09T01:46:40Z"
