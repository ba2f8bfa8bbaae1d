"""How many questions of a client may wait for upstreams, and which of them gives way when all places are taken."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest

from topodns.plugins.forward.limits import InFlight


@dataclass
class Table:
    """The places, and the clients that ask for them."""

    in_flight: InFlight = field(default_factory=InFlight)
    waiting: list["Question"] = field(default_factory=list)
    preempted: list[str] = field(default_factory=list)

    def ask(self, client: str, name: str = "") -> bool:
        """Whether the question may wait."""
        question = Question(self, client.encode(), name)
        if not self.in_flight.enter(question):
            self.in_flight.note_drop(question.address)
            return False
        self.waiting.append(question)
        return True

    def answer(self, question: "Question") -> None:
        self.waiting.remove(question)
        self.in_flight.leave(question)

    def count(self) -> Counter[str]:
        return Counter(question.address.decode() for question in self.waiting)


@dataclass(eq=False)
class Question:
    table: Table
    address: bytes
    name: str

    def preempt(self) -> None:
        self.table.waiting.remove(self)
        self.table.preempted.append(self.name or self.address.decode())


def test_a_client_may_use_half_of_the_free_places() -> None:
    table = Table()
    asked = [table.ask("alone") for _ in range(2000)]
    assert sum(asked) == 1366  # as many as then are free, and a half of that
    assert asked.index(False) == 1366
    assert (table.in_flight.dropped_by_client, table.in_flight.dropped_in_total) == (2000 - 1366, 0)


def test_a_client_has_256_places_while_there_are_any() -> None:
    table = Table()
    for client in range(16):
        assert all(table.ask(f"client {client}") for _ in range(256))
    assert table.in_flight.total == 4096
    assert not table.ask("client 3")
    assert table.in_flight.dropped_by_client == 1


def test_a_client_beyond_256_gets_no_more_once_others_need_the_places() -> None:
    table = Table()
    while table.ask("first"):
        pass
    for client in range(10):
        for _ in range(256):
            table.ask(f"client {client}")
    count = table.count()
    assert [count[f"client {client}"] for client in range(10)] == [256] * 10
    assert not table.ask("first")


def test_when_all_places_are_taken_the_newest_of_the_client_with_most_gives_way() -> None:
    table = Table(InFlight(max_total=6, max_per_client=4))
    for client, name in (("a", "a1"), ("b", "b1"), ("b", "b2"), ("b", "b3"), ("a", "a2"), ("c", "c1")):
        assert table.ask(client, name)
    assert table.ask("d", "d1")
    assert table.preempted == ["b3"]
    assert table.in_flight.preempted == 1
    assert (table.in_flight.total, table.count()) == (6, {"a": 2, "b": 2, "c": 1, "d": 1})


def test_the_newest_of_the_client_with_most_may_be_the_one_that_has_just_come() -> None:
    table = Table(InFlight(max_total=4, max_per_client=4))
    for client in "aabb":
        assert table.ask(client)
    assert not table.ask("a")
    assert table.preempted == []
    assert (table.in_flight.dropped_in_total, table.in_flight.dropped_by_client) == (1, 0)


def test_two_clients_with_as_many_do_not_take_each_other_s_places() -> None:
    table = Table(InFlight(max_total=5, max_per_client=4))
    for client in "aaabb":
        assert table.ask(client)
    assert not table.ask("b")
    assert table.count() == {"a": 3, "b": 2}


def test_clients_with_one_question_each_are_dropped_when_no_client_has_more() -> None:
    table = Table(InFlight(max_total=2, max_per_client=2))
    assert [table.ask(client) for client in "abc"] == [True, True, False]
    assert table.in_flight.dropped_in_total == 1


def test_a_client_with_few_is_let_in_however_many_flood() -> None:
    table = Table()
    for number in range(300 * 20):
        table.ask(f"attacker {number % 20}")
    assert table.in_flight.total == 4096
    assert all(table.ask("victim", "victim's") for _ in range(100))
    assert "victim's" not in table.preempted
    assert max(table.count().values()) - min(Counter(table.count() - Counter(victim=100)).values()) <= 1


def test_fewer_may_wait_where_there_are_few_sockets_and_never_more() -> None:
    table = Table(InFlight(max_total=6, max_per_client=4))
    table.in_flight.bound(3)
    table.in_flight.bound(1000)
    assert [table.ask(client) for client in "abcd"] == [True, True, True, False]


@pytest.mark.parametrize("seed", range(5))
def test_the_client_with_most_is_always_known(seed: int) -> None:
    """Against a count made anew at each step."""
    chance = Random(seed)
    table = Table(InFlight(max_total=20, max_per_client=6))
    for _ in range(3000):
        if table.waiting and chance.random() < 0.45:
            table.answer(chance.choice(table.waiting))
            continue
        client = chance.choice("aaaabbcdef")
        before, newest = table.count(), list(table.waiting)
        preempted = len(table.preempted)
        admitted = table.ask(client, str(len(newest)))
        full, most = len(newest) == 20, max(before.values(), default=0)
        share = max(6, (20 - len(newest)) / 2)
        assert admitted == (before[client] < share and (not full or most > before[client] + 1))
        assert len(table.preempted) - preempted == (admitted and full)
        if admitted and full:
            (gone,) = set(newest) - set(table.waiting)
            assert before[gone.address.decode()] == most
            assert gone is [each for each in newest if each.address == gone.address][-1]
        assert table.in_flight.total == len(table.waiting) <= 20
