"""The bill of materials of what a lock installs, as CycloneDX 1.5 in JSON."""

import json
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from release.lock import Pinned, read_lock
from release.source import ROOT, VERSION, created

LOCK: Final = ROOT / "requirements.lock"
IMAGE_LOCK: Final = ROOT / "requirements-image.lock"  # without the package kubernetes and what only that requires
IMAGE_PYTHON: Final = "3.13"  # Debian 13's, which the images have

_SELF: Final = f"pkg:pypi/topodns@{VERSION}"
_INDEX: Final = "https://pypi.org/project"


def write_sbom(out: Path, lock: Path) -> None:
    """The same text for the same lock and time."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(bill_of_materials(lock), indent=2) + "\n", encoding="utf-8")


def bill_of_materials(lock: Path) -> dict[str, Any]:
    """topodns and each library that the images' Python has with it: what is needed only to build is not in it."""
    libraries = [each for each in read_lock(lock) if each.installed_by(IMAGE_PYTHON)]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, _SELF + lock.read_text(encoding='utf-8'))}",
        "version": 1,
        "metadata": {"timestamp": created(), "component": _own()},
        "components": [_component(each) for each in libraries],
        "dependencies": _dependencies(libraries),
    }


def _own() -> dict[str, Any]:
    licenses = [{"license": {"id": "Apache-2.0"}}]
    own = {"type": "application", "bom-ref": _SELF, "name": "topodns", "version": VERSION}
    return {**own, "licenses": licenses, "purl": _SELF}


def _component(library: Pinned) -> dict[str, Any]:
    component = {
        "type": "library",
        "bom-ref": _purl(library),
        "name": library.name,
        "version": library.version,
        "scope": "required",
        "purl": _purl(library),
        # Of which file a hash is, the lock does not say: they are all that may be installed.
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"{_INDEX}/{library.name}/{library.version}/",
                "hashes": [{"alg": "SHA-256", "content": digest} for digest in library.hashes],
            }
        ],
    }
    license_text = _license(library)
    return component | ({"licenses": [license_text]} if license_text else {})


def _license(library: Pinned) -> dict[str, Any]:
    """What the package says of itself (PEP 639), where this version of it is installed here."""
    try:
        said = metadata(library.name).json
    except PackageNotFoundError:
        return {}
    if said["version"] != library.version:
        return {}
    if expression := said.get("license_expression"):
        return {"expression": expression}
    classified = [each.rpartition(" :: ")[2] for each in said.get("classifier", ()) if each.startswith("License ::")]
    first_line = str(said.get("license", "")).strip().partition("\n")[0] or ", ".join(classified)
    return {"license": {"name": first_line}} if first_line else {}


def _dependencies(libraries: Sequence[Pinned]) -> list[dict[str, Any]]:
    def wanted_by(name: str) -> list[str]:
        return [_purl(each) for each in libraries if name in each.wanted_by]

    own = {"ref": _SELF, "dependsOn": wanted_by("topodns")}
    return [own, *({"ref": _purl(each), "dependsOn": wanted_by(each.name)} for each in libraries)]


def _purl(library: Pinned) -> str:
    return f"pkg:pypi/{library.name}@{library.version}"
