"""Changes of a state, and what its subscribers get of them."""

from tests.support.model_builders import service
from topodns.cluster.model import Replaced, Upserted
from topodns.cluster.publishing_state import PublishingState
from topodns.cluster.state import ClusterState
from topodns.dependency import EVERYTHING, Fact, service_fact

DB, WEB = service("db", "shop"), service("web", "shop")


class Seen(PublishingState):
    """A state that needs Services, at second 1000, with what a subscriber got: the facts and the names held then."""

    def __init__(self) -> None:
        super().__init__(ClusterState(frozenset({"Service"})), lambda: 1000.0, [self._look])
        self.seen: list[tuple[frozenset[Fact], str]] = []

    def _look(self, facts: frozenset[Fact]) -> None:
        self.seen.append((facts, self.names))

    @property
    def names(self) -> str:
        return " ".join(sorted(name for _, name in self.state.services))


def test_subscribers_get_the_dependencies_that_a_change_touches_once_the_state_has_it() -> None:
    published = Seen()
    published.apply(Upserted(DB))
    ((facts, names),) = published.seen
    assert (service_fact("shop", "db") in facts, names, published.state.serial) == (True, "db", 1000)


def test_what_changes_nothing_is_not_published() -> None:
    published = Seen()
    for _ in range(2):
        published.apply(Upserted(DB))
    published.publish(frozenset())
    assert len(published.seen) == 1


def test_a_list_is_published_step_by_step_and_spares_what_changed_after_it() -> None:
    published = Seen()
    for each in (DB, WEB):
        published.apply(Upserted(each))
    published.seen.clear()
    assert sum(published.replace_steps(Replaced("Service", ()), frozenset({WEB.key}))) == 1
    assert published.seen == [(frozenset({EVERYTHING}), "web")]


def test_a_source_of_both_sorts_of_changes_has_one_function_for_them() -> None:
    published = Seen()
    assert [sum(published.take_steps(change)) for change in (Upserted(DB), Replaced("Service", (WEB,)))] == [1, 2]
    assert published.names == "web"


def test_a_kind_that_is_done_without_is_published_once() -> None:
    published = Seen()
    for _ in range(2):
        assert list(published.do_without_steps("Service", 0.0)) == []
    assert published.seen == [(frozenset({EVERYTHING}), "")]


def test_subscribers_may_be_replaced_between_the_steps_of_a_list() -> None:
    published, later = Seen(), list[frozenset[Fact]]()
    steps = published.replace_steps(Replaced("Service", (DB,)))
    next(steps)
    published.subscribers = [later.append]
    for _ in steps:
        pass
    assert (published.seen, later) == ([], [frozenset({EVERYTHING})])
