"""Which clusters a new Corefile takes over with all that is known of them, and which it reads anew."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from tests.support.corefile_settings import settings
from tests.support.generation_builder import read_whole
from tests.support.model_builders import node_locator, packed, pod, pod_locator
from topodns.app.generation import Assembly, Generation, Machine
from topodns.cluster.model import ClusterObject, ObjectKey, Replaced, kind_of
from topodns.dependency import Fact, address_fact, service_fact
from topodns.kube.manifests.source import ManifestSource

API, TOPOLOGY = "endpoint http://127.0.0.1:9", "keys annotation field"
SERVICE = """
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web}
spec: {clusterIP: 10.96.0.20, clusterIPs: [10.96.0.20]}
"""
WEB, FORMER = ObjectKey("shop", "web"), packed("10.96.0.20")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name in ("cluster", "other"):
        (tmp_path / f"{name}.yaml").write_text(SERVICE)
    return tmp_path


@pytest.fixture
def assembly() -> Assembly:
    return Assembly(Machine("here", "n1", frozenset({packed("127.0.0.1")}), Random(0)), lambda line: None)


def corefile(kubernetes: str, topology: str | None = TOPOLOGY, more: str = "") -> str:
    """A block with these options of `kubernetes` and of `topology`, None for no such directive."""
    followed = f"topology {{\n{topology}\n}}" if topology is not None else ""
    return f". {{\n kubernetes cluster.local {{\n{kubernetes}\n}}\n{followed}\n{more}\n}}\n"


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
    manifest.write_text(SERVICE.replace("10.96.0.20", "10.96.0.21"))
    assert isinstance(feed.source, ManifestSource)
    asyncio.run(feed.source.run(only(str(manifest))))
    assert got == [frozenset({service_fact(*WEB), address_fact(FORMER), address_fact(packed("10.96.0.21"))})]


async def only(path: str) -> AsyncIterator[frozenset[str]]:
    """One change of this file."""
    yield frozenset({path})


@pytest.mark.parametrize(("autopath", "apart"), [("autopath @kubernetes", True), ("", False)])
def test_ready_made_answers_are_shared_by_namespace_where_autopath_goes_by_pods(
    assembly: Assembly, directory: Path, autopath: str, apart: bool
) -> None:
    wanted = corefile("manifests cluster.yaml\npods verified", "locate nodes", more=autopath)
    generation = assembly.build(settings(wanted, str(directory)))
    (cluster,) = generation.clusters
    pods = (pod("one", ["10.0.0.1"], "shop"), pod("other", ["10.0.0.2"], "shop"), pod("two", ["10.0.0.3"], "prod"))
    cluster.state.apply(Replaced("Pod", pods), 0)
    views = [generation.view_key(packed(address)) for address in ("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")]
    assert views[0] == views[1]
    assert len(set(views)) == (3 if apart else 1)


# Queries that wait for their Pod

NEW_POD = packed("10.1.0.9")
LOCATORS = (node_locator("n1", ["10.1.0.1"]), pod_locator("p", ["10.1.0.1"], "n1"))


def waits(assembly: Assembly, source: str, methods: str, *objects: ClusterObject) -> bool:
    """Whether a query of an unknown address waits, once this cluster is known."""
    (cluster,) = assembly.build(settings(corefile(source, f"locate {methods}"), "config/demo")).clusters
    for kind in sorted(cluster.state.needed):
        cluster.state.apply(Replaced(kind, tuple(each for each in objects if kind_of(each) == kind)), 0)

    async def wait() -> bool:
        return cluster.pod_wait is not None and cluster.pod_wait.wait(NEW_POD) is not None

    return asyncio.run(wait())


def test_a_new_pod_waits_where_its_node_will_be_known_in_a_moment(assembly: Assembly) -> None:
    assert waits(assembly, API, "nodes pods")
    assert waits(assembly, API, "nodelocator", LOCATORS[0])
    assert waits(assembly, API, "nodes podlocator slices", LOCATORS[1])


def test_a_new_pod_does_not_wait_for_what_does_not_come(assembly: Assembly) -> None:
    assert not waits(assembly, API, "nodes podcidr slices")
    assert not waits(assembly, API, "nodelocator podlocator")  # there are none: nothing writes them
    assert not waits(assembly, API, "podlocator", LOCATORS[0])
    assert not waits(assembly, "manifests cluster", "nodelocator", LOCATORS[0])
