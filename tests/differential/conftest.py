"""Both servers under each Corefile, over one fake API server for the cluster and one upstream for the world outside."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.differential.comparison import Case
from tests.differential.trial import Trials
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
    with running(objects, own_address()) as api, upstream() as outside:
        yield Trials(objects, api.url, f"{outside.host}:{outside.port}", tmp_path_factory)


@pytest.fixture(scope="session")
def everything(trials: Trials) -> Sequence[Case]:
    """All questions under all Corefiles."""
    return [case for title in trials.titles for case in trials.cases(title)]
