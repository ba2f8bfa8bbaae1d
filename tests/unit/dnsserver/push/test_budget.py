"""Limits of sessions and subscriptions, and what the counts are after each has ended."""

from topodns.dnsserver.push.budget import PushBudget
from topodns.plugins.push import SESSIONS_OF_ADDRESS, PushCounts, PushRefusal, SessionEnd
from topodns.query.session import PushLimits

ONE, TWO = b"\x0a\0\0\1", b"\x0a\0\0\2"


def budget(sessions: int = 100, subscriptions: int = 3, memory: int = 1 << 20) -> PushBudget:
    return PushBudget(PushLimits(sessions, subscriptions, memory), PushCounts())


def test_an_address_has_sixteen_sessions_at_most() -> None:
    limited = budget()
    assert [limited.add_session(ONE) for _ in range(SESSIONS_OF_ADDRESS)] == [None] * 16
    assert limited.add_session(ONE) is PushRefusal.SESSIONS
    assert limited.add_session(TWO) is None
    limited.remove_session(ONE, SessionEnd.CLOSED)
    assert limited.add_session(ONE) is None


def test_all_addresses_together_have_so_many_sessions() -> None:
    limited = budget(sessions=1)
    assert limited.add_session(ONE) is None
    assert limited.add_session(TWO) is PushRefusal.SESSIONS


def test_a_session_has_so_many_subscriptions_and_its_address_twice_as_many() -> None:
    limited = budget(subscriptions=3)
    limited.add_session(ONE)
    assert [limited.add_subscription(ONE, held) for held in range(4)] == [None] * 3 + [PushRefusal.SUBSCRIPTIONS]
    assert [limited.add_subscription(ONE, held) for held in range(3)] == [None] * 3
    assert limited.add_subscription(ONE, 0) is PushRefusal.SUBSCRIPTIONS
    limited.add_session(TWO)
    assert limited.add_subscription(TWO, 0) is None


def test_there_is_no_subscription_beyond_the_memory() -> None:
    limited = budget(memory=150)
    limited.add_session(ONE)
    assert [limited.add_subscription(ONE, 0) for _ in range(3)] == [None, None, PushRefusal.MEMORY]


def test_everything_is_given_back_in_any_order() -> None:
    limited = budget()
    limited.add_session(ONE)
    limited.add_subscription(ONE, 0)
    limited.remove_session(ONE, SessionEnd.SLOW)
    assert limited.counts.addresses == {ONE: [0, 1]}
    limited.remove_subscription(ONE)
    assert limited.counts == PushCounts(ended=limited.counts.ended)
    assert limited.counts.ended == {SessionEnd.SLOW: 1}
