"""The output of `make audit` for pip-audit's report, and for none."""

import pytest

from release import vulnerabilities
from release.lock import read_lock

CLEAN = {"name": "h11", "version": "0.16.0", "vulns": []}
BAD = {"name": "idna", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
UNKNOWN = {"name": "yarl", "skip_reason": "Dependency not found on PyPI and could not be audited: yarl (1)"}


def test_a_vulnerability_is_named_with_its_remedy() -> None:
    assert vulnerabilities.found({"dependencies": [CLEAN, BAD, UNKNOWN]}) == (2, ["idna 1: PYSEC-1, fixed in ['2']"])


def test_where_nothing_was_looked_up_nothing_was_found_is_not_said() -> None:
    with pytest.raises(OSError, match="knows none of the libraries"):
        vulnerabilities.found({"dependencies": [UNKNOWN]})


@pytest.mark.parametrize(("strict", "status"), [(False, 0), (True, 1)])
def test_without_a_vulnerability_database_the_audit_says_so_and_fails_only_if_strict(
    strict: bool, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreachable() -> tuple[int, list[str]]:
        raise OSError("no route")

    monkeypatch.setattr(vulnerabilities, "look_up", unreachable)
    assert vulnerabilities.report(strict) == status
    assert capsys.readouterr().err == (
        "NOT AUDITED: no library of requirements.lock was looked up for known vulnerabilities: no route; "
        "`make audit ARGS=--strict` fails here\n"
    )


@pytest.mark.parametrize(("lines", "status"), [([], 0), (["idna 1: PYSEC-1"], 1)])
def test_a_vulnerability_is_a_failure(lines: list[str], status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vulnerabilities, "look_up", lambda: (2, lines))
    assert vulnerabilities.report(strict=False) == status


def test_pip_audit_is_installed_by_hashes_from_a_lock_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], may_find: bool = False) -> str:
        commands.append(command)
        return '{"dependencies": [{"name": "h11", "version": "0.16.0", "vulns": []}]}'

    monkeypatch.setattr(vulnerabilities, "_run", run)
    monkeypatch.setattr("venv.create", lambda *_args, **_options: None)
    assert vulnerabilities.look_up() == (1, [])
    install, look_up = commands
    assert install[-3:] == ["--require-hashes", "-r", str(vulnerabilities.PIP_AUDIT)]
    assert "pip-audit" in {each.name for each in read_lock(vulnerabilities.PIP_AUDIT)}
    assert "--require-hashes" in look_up
