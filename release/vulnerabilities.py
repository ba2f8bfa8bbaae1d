"""Advisories about the libraries of requirements.lock: PyPI's vulnerability database, asked by pip-audit.

pip-audit runs in an environment of its own. Without access to the database no library counts as free of advisories:
the output says that none was looked up. `make audit` is the command.
"""

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


def look_up() -> tuple[int, list[str]]:
    """(libraries looked up, a line for each vulnerability). Raises OSError if the database cannot be asked."""
    with TemporaryDirectory(prefix="topodns-audit-") as folder:
        python = str(Path(folder, "bin/python"))
        venv.create(folder, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*install, "--require-hashes", "-r", str(PIP_AUDIT)])
        command = [python, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
        said = _run([*command, "--require-hashes", "--disable-pip", "-r", str(LOCK)], may_find=True)
    return found(json.loads(said))


def found(report: dict[str, Any]) -> tuple[int, list[str]]:
    """As `look_up`, from pip-audit's report. A library that the database does not know was not looked up.

    Raises OSError if it knows none.
    """
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
        raise OSError((done.stderr.strip() or "pip gave no reason").splitlines()[-1])
    return done.stdout


def report(strict: bool) -> int:
    """Print the result of `look_up`. Returns the exit status: 1 if there is a vulnerability.

    If the database cannot be asked, a line on standard error says so, and the status is 1 only with `strict`.
    """
    try:
        count, vulnerabilities = look_up()
    except (OSError, subprocess.CalledProcessError) as problem:
        print(
            f"NOT AUDITED: no library of {LOCK.name} was looked up for known vulnerabilities: {problem}; "
            "`make audit ARGS=--strict` fails here",
            file=sys.stderr,
        )
        return 1 if strict else 0
    print("\n".join([*vulnerabilities, f"{count} libraries looked up, {len(vulnerabilities)} vulnerabilities"]))
    return 1 if vulnerabilities else 0
