"""Known vulnerabilities of what requirements.lock installs, by pip-audit in an environment of its own."""

import json
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from release.sbom import LOCK
from release.source import ROOT

PIP_AUDIT: Final = ROOT / "requirements-audit.lock"


def audit() -> tuple[int, list[str]]:
    """How many libraries were looked up; a line for each vulnerability. Raises OSError where nobody can be asked."""
    with TemporaryDirectory(prefix="topodns-audit-") as folder:
        python = str(Path(folder, "bin/python"))
        venv.create(folder, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*install, "--require-hashes", "-r", str(PIP_AUDIT)])
        command = [python, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
        said = _run([*command, "--require-hashes", "--disable-pip", "-r", str(LOCK)], may_find=True)
    return found(json.loads(said))


def found(report: dict[str, Any]) -> tuple[int, list[str]]:
    """The same of pip-audit's report. What the index does not know was not looked up."""
    looked_up = [each for each in report["dependencies"] if "skip_reason" not in each]
    if not looked_up:
        raise OSError("PyPI's vulnerability service knows none of the libraries (a mirror without it?)")
    return len(looked_up), [
        f"{each['name']} {each['version']}: {vulnerability['id']}, fixed in {vulnerability['fix_versions']}"
        for each in looked_up
        for vulnerability in each["vulns"]
    ]


def _run(command: list[str], may_find: bool = False) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and not (may_find and done.stdout.startswith("{")):
        raise OSError((done.stderr.strip() or "no word of why").splitlines()[-1])
    return done.stdout


def report(strict: bool) -> int:
    """Print what was found; the exit status. Where nobody can be asked, that is a failure only if it is `strict`."""
    try:
        count, vulnerabilities = audit()
    except (OSError, subprocess.CalledProcessError) as problem:
        print(
            f"NOT AUDITED: no library of {LOCK.name} was looked up for known vulnerabilities: {problem}; "
            "`make audit ARGS=--strict` fails here",
            file=sys.stderr,
        )
        return 1 if strict else 0
    print("\n".join([*vulnerabilities, f"{count} libraries looked up, {len(vulnerabilities)} vulnerabilities"]))
    return 1 if vulnerabilities else 0
