"""Both servers under each Corefile, over one stand-in for the cluster's API server and one for the world outside."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.differential.comparison import Case
from tests.differential.trial import Trials
from tests.differential.upstream import upstream
from tests.differential.world import cluster
from tests.kubelab.programs import COREDNS
from tests.support.fake_api.server import running
from tests.support.process import own_address


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where there is no CoreDNS, one test is skipped for all, so that the reason stands in one line."""
    ours = [item for item in items if Path(__file__).parent in item.path.parents]
    if not ours or not COREDNS.missing:
        return
    first, *others = ours
    missing = (
        f"NO COREDNS HERE, nothing is compared with it: {COREDNS.folder} lacks it; `make test-differential` builds it"
    )
    first.add_marker(pytest.mark.skip(reason=missing))
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


@pytest.fixture(scope="session")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    objects = cluster()
    with running(objects, own_address()) as api, upstream() as outside:
        yield Trials(objects, api.url, f"{outside.host}:{outside.port}", tmp_path_factory)


@pytest.fixture(scope="session")
def everything(trials: Trials) -> Sequence[Case]:
    """All questions under all Corefiles."""
    return [case for title in trials.titles for case in trials.cases(title)]
