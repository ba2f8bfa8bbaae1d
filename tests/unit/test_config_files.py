"""Every file in config/ is loaded here, as the server would load it, without a complaint."""

from pathlib import Path

import pytest

from tests.support import distribution_corefiles
from tests.support.generation_builder import assembly, read_whole
from topodns.app.load import load_settings, settings_from_text
from topodns.cluster.findings.finding import Severity
from topodns.cluster.findings.objects import policy_findings
from topodns.cluster.model import Change, Replaced
from topodns.corefile.zones import ListenAt
from topodns.kube.client.contract import ApiSettings
from topodns.kube.manifests.source import SUFFIXES, ManifestSource
from topodns.plugins.forward.settings import UpstreamAddress

CONFIG = Path(__file__).parents[2] / "config"
COREFILES = sorted(set(CONFIG.rglob("Corefile")) - set(distribution_corefiles.COREFILES.values()))
APPLIED = CONFIG / "kubernetes"  # for kubectl, not for the server: see test_permissions.py
MANIFEST_DIRECTORIES = sorted({path.parent for path in CONFIG.rglob("*") if path.suffix in SUFFIXES} - {APPLIED})

WITHOUT_SERVICES = (APPLIED / "locator",)


def loaded(directory: Path) -> tuple[ManifestSource, dict[str, Replaced]]:
    changes: dict[str, Replaced] = {}

    def take(change: Change) -> tuple[()]:
        assert isinstance(change, Replaced)
        changes[change.kind] = change
        return ()

    source = ManifestSource([str(directory)], take)
    source.load()
    return source, changes


@pytest.mark.parametrize("directory", MANIFEST_DIRECTORIES, ids=lambda path: str(path.relative_to(CONFIG)))
def test_manifests_load_without_a_warning(directory: Path) -> None:
    source, changes = loaded(directory)
    assert source.problems == ()
    assert bool(changes["Service"].objects) is (directory not in WITHOUT_SERVICES)


def test_every_file_is_a_corefile_or_a_manifest() -> None:
    """So that a new sort of file in config/ is not forgotten here."""
    files = [path for path in CONFIG.rglob("*") if path.is_file() and path.name != "Corefile"]
    files = [path for path in files if path.parent != APPLIED]
    assert [path for path in files if path.parent not in MANIFEST_DIRECTORIES or path.suffix not in SUFFIXES] == []


@pytest.mark.parametrize("corefile", COREFILES, ids=lambda path: str(path.relative_to(CONFIG)))
def test_corefiles_can_be_served_and_their_clusters_leave_nothing_to_complain_about(corefile: Path) -> None:
    generation = read_whole(assembly(), load_settings(str(corefile), 53, {}))
    assert generation.tables
    for cluster in generation.clusters:
        assert cluster.state.synced
        found = filter(None, policy_findings(cluster.state, ignored=True))
        assert [each for each in found if each.severity is not Severity.INFO] == []


@pytest.mark.parametrize("name", distribution_corefiles.COREFILES)
def test_corefiles_of_distributions_can_be_served_by_a_pod_and_follow_its_resolv_conf(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "resolv.conf").write_text("search example.org\nnameserver 192.0.2.53\noptions ndots:1\n")
    text = distribution_corefiles.corefile(name, {distribution_corefiles.RESOLV_CONF: str(tmp_path / "resolv.conf")})
    settings = settings_from_text(text, str(distribution_corefiles.COREFILES[name]), 5300, {})
    assert list(assembly().build(settings).tables) == [ListenAt("", 53)]
    assert settings.blocks[0].settings["forward"][0].upstreams == (UpstreamAddress("192.0.2.53", 53),)
    assert settings.blocks[0].settings.get("kubernetes") is not None
    assert settings.blocks[0].settings["kubernetes"].api == ApiSettings()


def test_there_is_a_corefile_for_each_distribution_that_the_guide_is_about() -> None:
    guide = (CONFIG.parent / "docs/migrate/from-coredns.md").read_text(encoding="utf-8")
    assert len(distribution_corefiles.COREFILES) == 9
    for name in distribution_corefiles.COREFILES:
        assert f"(../../config/corefiles/{name}/Corefile)" in guide
