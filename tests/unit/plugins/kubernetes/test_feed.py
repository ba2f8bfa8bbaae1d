"""Which clusters a new Corefile takes over with all that is known of them, and which it reads anew."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.corefile_settings import settings
from tests.support.generation_builder import read_whole
from tests.support.model_builders import packed
from tests.unit.plugins.kubernetes.scene import API, TOPOLOGY, corefile
from topodns.app.generation import Assembly, Generation
from topodns.cluster.model import ObjectKey
from topodns.dependency import Fact, address_fact, service_fact
from topodns.kube.manifests.source import ManifestSource

WEB, FORMER = ObjectKey("shop", "web"), packed("10.96.0.20")

BEFORE = corefile(API)
KEPT = [
    ("nothing", BEFORE),
    ("the TTL", corefile(f"{API}\nttl 30")),
    ("how pods are answered", corefile(f"{API}\npods insecure")),
    ("what falls through", corefile(f"{API}\nfallthrough")),
    ("which namespaces are exposed", corefile(f"{API}\nnamespaces shop")),
    ("by which labels they are", corefile(f"{API}\nnamespace_labels team=a")),
    ("names of endpoints", corefile(f"{API}\nnoendpoints")),
    ("names of topology zones", corefile(f"{API}\nzonal")),
    ("how long a start waits", corefile(f"{API}\nstartup_timeout 9s")),
    ("the origins", BEFORE.replace("cluster.local", "cluster.local example.org")),
    ("the TTL under topology", corefile(API, f"{TOPOLOGY}\nttl 1")),
    ("how clients are found", corefile(API, f"{TOPOLOGY}\nlocate nodes podcidr-unverified pods")),
    ("Pods for their names", corefile(f"{API}\npods verified")),
    ("who is believed", corefile(API, f"{TOPOLOGY}\ntrust 10.0.0.0/8")),
    ("what an unknown client gets", corefile(API, f"{TOPOLOGY}\nunknown_client all")),
    ("what becomes of invalid keys", corefile(API, f"{TOPOLOGY}\non_invalid deny")),
    ("another directive", corefile(API, more="minimal\nloadbalance")),
    ("the listener", BEFORE.replace(". {", ".:5353 {", 1)),
]
ANEW = [
    ("another server", corefile("endpoint http://127.0.0.1:10")),
    ("manifests instead", corefile("manifests cluster.yaml")),
    ("labels", corefile(f"{API}\nlabels app=web")),
    ("no Pods", corefile(API, f"{TOPOLOGY}\nlocate nodes podcidr slices")),
    ("NodeLocators", corefile(API, f"{TOPOLOGY}\nlocate nodes podcidr pods nodelocator slices")),
    ("ServiceImports", corefile(f"{API}\nmulticluster cluster.local")),
    ("another cluster's id", corefile(f"{API}\nmulticluster cluster.local\ncluster_id east")),
    ("endpoints named otherwise", corefile(f"{API}\nendpoint_pod_names")),
    ("no topology", corefile(API, None)),
    ("other keys", corefile(API, "keys annotation")),
    ("keys that count in another order", corefile(API, "keys field annotation")),
    ("terminating endpoints", corefile(API, f"{TOPOLOGY}\nterminating_fallback")),
]


def reloaded(assembly: Assembly, directory: Path, before: str, after: str) -> tuple[Generation, Generation]:
    old = assembly.build(settings(before, str(directory)))
    return old, assembly.build(settings(after, str(directory)), old.feeds)


@pytest.mark.parametrize("after", [case[1] for case in KEPT], ids=[case[0] for case in KEPT])
def test_a_change_of_how_names_are_answered_reads_nothing_anew(assembly: Assembly, directory: Path, after: str) -> None:
    old, new = reloaded(assembly, directory, BEFORE, after)
    assert new.feeds == old.feeds
    assert new.clusters != old.clusters
    assert new.clusters[0].kubernetes == new.settings.blocks[0].settings.get("kubernetes")


@pytest.mark.parametrize("after", [case[1] for case in ANEW], ids=[case[0] for case in ANEW])
def test_a_change_of_the_watched_objects_starts_the_cluster_anew(
    assembly: Assembly, directory: Path, after: str
) -> None:
    old, new = reloaded(assembly, directory, BEFORE, after)
    assert len(new.feeds) == 1
    assert new.feeds != old.feeds
    assert new.clusters[0].state is not old.clusters[0].state


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ("manifests cluster.yaml\nttl 9", True),
        ("manifests cluster.yaml other.yaml", False),
        ("manifests other.yaml", False),
        ("manifests cluster.yaml\nlabels app=web", False),
    ],
)
def test_manifests_are_kept_by_their_paths_and_labels(
    assembly: Assembly, directory: Path, options: str, kept: bool
) -> None:
    old, new = reloaded(assembly, directory, corefile("manifests cluster.yaml"), corefile(options))
    assert (new.feeds == old.feeds) == kept


def test_of_two_clusters_that_are_read_alike_each_is_taken_over_once(assembly: Assembly, directory: Path) -> None:
    two = BEFORE + BEFORE.replace(". {", "example.org {", 1)
    old, new = reloaded(assembly, directory, two, two)
    assert new.feeds == old.feeds
    assert new.feeds[0] is not new.feeds[1]
    _, more = reloaded(assembly, directory, BEFORE, two)
    assert more.feeds[0] is not more.feeds[1]


def test_a_cluster_is_matched_to_its_predecessor_wherever_its_block_is_in_the_corefile(
    assembly: Assembly, directory: Path
) -> None:
    other = corefile("manifests cluster.yaml").replace(". {", "example.org {", 1)
    old, new = reloaded(assembly, directory, BEFORE + other, other + BEFORE)
    assert new.feeds == [old.feeds[1], old.feeds[0]]


def test_a_cluster_that_was_left_out_once_is_not_there_to_be_taken_over(assembly: Assembly, directory: Path) -> None:
    old, without = reloaded(assembly, directory, BEFORE, ". {\nwhoami\n}")
    assert without.feeds == []
    again = assembly.build(settings(BEFORE, str(directory)), without.feeds)
    assert again.feeds != old.feeds


def test_the_known_state_is_available_to_the_next_generation_at_once(assembly: Assembly, directory: Path) -> None:
    old = read_whole(assembly, settings(corefile("manifests cluster.yaml"), str(directory)))
    new = assembly.build(settings(corefile("manifests cluster.yaml\nttl 9"), str(directory)), old.feeds)
    assert new.clusters[0].state.synced
    assert new.clusters[0].state.service(WEB) is not None


def test_an_edit_after_a_reload_is_published_to_the_current_generation(assembly: Assembly, directory: Path) -> None:
    manifest = directory / "cluster.yaml"
    old = read_whole(assembly, settings(corefile("manifests cluster.yaml"), str(directory)))
    new = assembly.build(settings(corefile("manifests cluster.yaml\nttl 9"), str(directory)), old.feeds)
    got: list[frozenset[Fact]] = []
    (feed,) = new.feeds
    feed.subscribe(got.append)
    manifest.write_text(manifest.read_text().replace("10.96.0.20", "10.96.0.21"))
    assert isinstance(feed.source, ManifestSource)
    asyncio.run(feed.source.run(only(str(manifest))))
    assert got == [frozenset({service_fact(*WEB), address_fact(FORMER), address_fact(packed("10.96.0.21"))})]


async def only(path: str) -> AsyncIterator[frozenset[str]]:
    """One change of this file."""
    yield frozenset({path})
