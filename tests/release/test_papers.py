"""The papers of a release: one version, a changelog of the known form, a workflow that runs documented commands."""

import re
from datetime import date

import pytest
import yaml

from release.source import ROOT, VERSION
from topodns.app.banner import version_text

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
WORKFLOW = (ROOT / ".github/workflows/ci.yaml").read_text(encoding="utf-8")
WORKFLOWS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / ".github/workflows").iterdir())}
JOBS = {
    f"{name} {job}": steps for name, text in WORKFLOWS.items() for job, steps in yaml.safe_load(text)["jobs"].items()
}
HEADING = re.compile(r"^## \[(\d+\.\d+\.\d+|Unreleased)\](?: - (\d{4}-\d\d-\d\d|Unreleased))?$", re.MULTILINE)
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")  # Keep a Changelog 1.1.0


def targets(name: str = "Makefile") -> dict[str, list[str]]:
    """The targets for people, each with what it depends on."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return {target: needed.split() for target, needed in re.findall(r"^([a-z0-9-]+):([^#\n]*)##", text, re.MULTILINE)}


def called_targets(workflow: str) -> set[str]:
    lines = re.findall(r"run: make (?:--silent )?([a-z0-9 -]+)", workflow)
    return {name for words in lines for name in words.split()}


def test_the_version_is_written_in_one_place() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in pyproject
    assert 'version = { attr = "topodns.__version__" }' in pyproject
    assert not re.search(r'^version = "', pyproject, re.MULTILINE)


def test_the_program_and_the_chart_report_that_version() -> None:
    chart = yaml.safe_load((ROOT / "charts/topodns/Chart.yaml").read_text(encoding="utf-8"))
    assert version_text().splitlines()[0] == f"topodns-{VERSION}"
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


def test_the_changelog_has_this_version_first_and_all_by_falling_order() -> None:
    found = [(name, when) for name, when in HEADING.findall(CHANGELOG) if name != "Unreleased"]
    assert found[0][0] == VERSION
    numbers = [tuple(map(int, name.split("."))) for name, _ in found]
    assert numbers == sorted(numbers, reverse=True)
    assert len(set(numbers)) == len(numbers)
    assert all(when == "Unreleased" or date.fromisoformat(when) for _, when in found)
    assert "Unreleased" not in [when for _, when in found[1:]], "only the first can be unreleased"


def test_the_changelog_has_no_other_headings() -> None:
    assert CHANGELOG.startswith("# Changelog\n")
    assert re.findall(r"^## .*$", CHANGELOG, re.MULTILINE) == [found[0] for found in HEADING.finditer(CHANGELOG)]
    for version in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", version, re.MULTILINE)
        assert kinds, version
        assert set(kinds) <= set(KINDS)
        assert len(set(kinds)) == len(kinds)


def test_a_release_has_at_most_ten_entries() -> None:
    for version in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]:
        assert 1 <= len(re.findall(r"^- ", version, re.MULTILINE)) <= 10, version.splitlines()[0]


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_workflow_runs_targets_of_the_makefile(workflow: str) -> None:
    assert set() < called_targets(WORKFLOWS[workflow]) <= targets().keys()


def test_the_workflow_runs_all_that_test_all_runs() -> None:
    assert set(targets()["test-all"]) | {"lint", "audit", "dist", "sbom", "image", "image-tools"} <= called_targets(
        WORKFLOW
    )


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_workflow_uses_nothing_that_can_change_under_it(workflow: str) -> None:
    for used in re.findall(r"uses: *(\S+)", WORKFLOWS[workflow]):
        assert re.search(r"^\./|@[0-9a-f]{40}$", used), used
    assert yaml.safe_load(WORKFLOWS[workflow])["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("job", [name for name, steps in JOBS.items() if "steps" in steps])
def test_every_job_has_a_time_limit(job: str) -> None:
    assert JOBS[job]["timeout-minutes"] > 0


def test_a_tag_is_published_only_after_the_suites() -> None:
    release = yaml.safe_load(WORKFLOWS["release"])
    assert release[True] == {"push": {"tags": ["v*"]}}  # `on` of YAML 1.1
    assert release["jobs"]["suites"]["uses"] == "./.github/workflows/ci.yaml"
    for job in ("publish", "pypi"):
        needed = release["jobs"][job]["needs"]
        assert "suites" in needed or needed == "publish"


def test_only_the_jobs_that_publish_may_write() -> None:
    writing = {name for name, job in JOBS.items() if "write" in job.get("permissions", {}).values()}
    assert writing == {"release publish", "release pypi"}
