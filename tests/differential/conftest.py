"""Both servers under each Corefile, over one fake API server for the cluster and one upstream for the world outside."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from tests.differential.comparison import Case
from tests.differential.mirroring import as_slices
from tests.differential.random_world import SEED, respelled
from tests.differential.trial import Trials, World
from tests.differential.upstream import upstream
from tests.differential.world import cluster
from tests.kubelab.programs import COREDNS
from tests.support.fake_api.server import running
from tests.support.server_process import own_address
from tests.support.suite_skips import skip_all, those_of


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where there is no CoreDNS, nothing is compared."""
    ours = those_of(Path(__file__).parent, items)
    if ours and COREDNS.missing:
        lacking = f"{COREDNS.folder} lacks it; `make test-differential` builds it"
        skip_all(config, items, ours, f"NO COREDNS HERE, nothing is compared with it: {lacking}")


@pytest.fixture(scope="session")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    objects = cluster()
    theirs, spelled = as_slices(objects), respelled(objects, Random(SEED))
    files = tmp_path_factory.mktemp("manifests") / "cluster.json"
    files.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": spelled}))
    with (
        running(theirs, own_address()) as api,
        running(as_slices(spelled), own_address()) as other_api,
        upstream() as outside,
    ):
        world = World(theirs, api.url, other_api.url, files)
        yield Trials(world, f"{outside.host}:{outside.port}", tmp_path_factory)


@pytest.fixture(scope="session")
def everything(trials: Trials) -> Sequence[Case]:
    """All questions under all Corefiles."""
    return [case for title in trials.titles for case in trials.cases(title)]
