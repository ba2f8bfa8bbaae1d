"""What a query or a watch event leaves behind is freed at once, as it is in no reference cycle.

Else garbage collections would come sooner, and one delays queries for milliseconds.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given

from bench.guard.counting import Calls
from bench.guard.paths import count_all
from tests.support.random_clusters import KINDS, History, histories
from topodns.cluster.model import KeySource, ObjectKey, Upserted
from topodns.cluster.state import ClusterState
from topodns.topology.keys import key_reader


@pytest.fixture(autouse=True, scope="module")
def _unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()


@contextmanager
def garbage() -> Iterator[Counter[str]]:
    """The types of the objects that only a garbage collection would free, of those made meanwhile."""
    found = Counter[str]()
    gc.collect()
    gc.freeze()  # the collection looks at new objects only
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found.update(type(each).__name__ for each in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_a_query_leaves_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On each path of `make bench-guard`."""
    found = Counter[str]()

    def act(_: Calls, action: Callable[[], object]) -> None:
        with garbage() as left:
            action()
        found.update(left)

    monkeypatch.setattr(Calls, "count", act)
    assert len(list(count_all(tmp_path))) > 10
    assert found == {}


@given(histories)
def test_a_change_of_the_cluster_leaves_none(history: History) -> None:
    first, changes = history
    state = ClusterState(frozenset(KINDS), key_reader(tuple(KeySource)))
    for each in first:
        state.apply(Upserted(each), 0)
    with garbage() as left:
        for change in changes:
            state.apply(change, 0)
            for key in state.services:
                state.backends(ObjectKey(*key))
    assert left == {}
