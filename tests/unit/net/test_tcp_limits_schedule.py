"""The order of answers over TCP: a little in each turn of the loop, by address, then by connection."""

import asyncio
from dataclasses import dataclass, field

from topodns.net.tcp_limits import BUDGET, TcpSchedule

COST = 1.01 * BUDGET / 40  # of a message: 40 of them are more than a turn has


@dataclass
class Clock:
    now: float = 1.0

    def __call__(self) -> float:
        return self.now


@dataclass(eq=False)
class Connection:
    """So many messages wait. `log` has a line for each answer: which connection it was of."""

    name: str
    waiting: int
    clock: Clock
    log: list[str]
    cost: float = COST
    address: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.address = self.name[:1].encode()

    def answer_some(self, messages: int, until: float) -> bool:
        while self.waiting and messages:
            self.waiting, messages = self.waiting - 1, messages - 1
            self.clock.now += self.cost
            self.log.append(self.name)
            if self.clock.now >= until:
                break
        return self.waiting > 0


def serve(schedule: TcpSchedule, connection: Connection) -> None:
    schedule.serve(connection.address, connection.answer_some)


def served(*waiting: tuple[str, int], cost: float = COST) -> list[list[str]]:
    """The queries answered at once, and in each turn of the loop after that, until nothing waits."""
    clock, log = Clock(), list[str]()
    schedule = TcpSchedule(clock)
    turns: list[list[str]] = []

    def close_turn() -> None:
        turns.append(log.copy())
        log.clear()

    async def story() -> None:
        for name, messages in waiting:
            serve(schedule, Connection(name, messages, clock, log, cost))
        close_turn()
        while sum(map(len, turns)) < sum(messages for _, messages in waiting):
            await asyncio.sleep(0)
            close_turn()

    asyncio.run(story())
    return turns


def test_a_single_question_is_answered_at_once() -> None:
    assert served(("a1", 1)) == [["a1"]]


def test_one_turn_answers_no_more_than_the_budget_over_all_clients() -> None:
    turns = served(*[(f"{letter}{number}", 30) for letter in "abcd" for number in range(3)])
    assert max(map(len, turns)) <= 40
    assert [len(turn) for turn in turns[1:-1] if turn] == [40] * 7


def test_one_dear_message_ends_a_turn() -> None:
    assert served(("a1", 3), cost=2 * BUDGET) == [["a1"], ["a1"], ["a1"]]


def test_addresses_take_turns_however_many_connections_they_have() -> None:
    many = [(f"a{number}", 100) for number in range(10)]
    turns = served(("a", 100), *many, ("b1", 16))
    # What waits first is a's; then it is a's turn once, and then b's.
    first_turns = [name[0] for turn in turns[:4] for name in turn]
    assert first_turns[40:].index("b") == 32


def test_connections_of_an_address_take_turns() -> None:
    turns = served(("a0", 40), ("a1", 40), ("a2", 1))
    assert turns[0] == ["a0"] * 40
    assert turns[1][:33] == ["a1"] * 32 + ["a2"]


def test_an_exception_of_one_connection_stops_no_other() -> None:
    clock, log = Clock(), list[str]()
    schedule = TcpSchedule(clock)
    broken = Connection("b", 1, clock, log)
    broken.answer_some = _raises  # type: ignore[method-assign]

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: log.append("error"))
        serve(schedule, Connection("a", 60, clock, log))
        serve(schedule, broken)
        serve(schedule, Connection("c", 1, clock, log))
        for _ in range(4):
            await asyncio.sleep(0)

    asyncio.run(story())
    assert log.count("error") == 1
    assert (log.count("a"), log.count("c")) == (60, 1)


def _raises(messages: int, until: float) -> bool:
    raise ValueError


def test_a_lone_query_is_answered_at_once_while_its_window_has_time_and_no_other_waits() -> None:
    clock = Clock()
    schedule = TcpSchedule(clock)
    began = schedule.began()
    assert began == clock.now
    clock.now += 1.01 * BUDGET
    schedule.ended(began)
    assert not schedule.began()
    clock.now += 2 * BUDGET
    assert schedule.began()


def test_no_lone_query_is_answered_before_those_that_wait() -> None:
    clock = Clock()
    schedule = TcpSchedule(clock)

    async def story() -> None:
        serve(schedule, Connection("a1", 3, clock, [], 2 * BUDGET))
        clock.now += 2 * BUDGET
        assert not schedule.began()

    asyncio.run(story())
