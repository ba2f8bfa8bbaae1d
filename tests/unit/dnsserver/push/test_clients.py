"""Limits of sessions and subscriptions, shares of addresses, and what the counts are after each has ended."""

import pytest

from tests.support.push_server import known_addresses
from topodns.dnsserver.push.answers import PushedAnswer, Subscriber
from topodns.dnsserver.push.clients import SUBSCRIPTION, PushClients
from topodns.plugins.push import SESSIONS_OF_ADDRESS, PushCounts, PushRefusal, SessionEnd
from topodns.query.session import PushLimits

ONE, TWO, THREE = b"\x0a\0\0\1", b"\x0a\0\0\2", b"\x0a\0\0\3"


class Session(Subscriber):
    """Ends at once when it is evicted; its connection has only the address."""

    def __init__(self, clients: PushClients, address: bytes) -> None:
        self.clients = clients
        self.address = address
        self.connection = self  # type: ignore[assignment]
        self.answers: dict[int, PushedAnswer] = {}
        self.end = SessionEnd.CLOSED
        self.is_evicted = False

    def evict(self) -> None:
        self.is_evicted = True
        self.end = SessionEnd.EVICTED
        self.clients.remove_session(self)


class Limited:
    """Clients on a listener with limits, as its publisher adds them."""

    def __init__(
        self, sessions: int = 100, subscriptions: int = 3, memory: int = 1 << 20, clients: PushClients | None = None
    ) -> None:
        self.limits = PushLimits(sessions, subscriptions, memory)
        self.clients = clients or PushClients(PushCounts())
        self.counts = self.clients.counts

    def add_session(self, session: Session) -> PushRefusal | None:
        found = self.clients.room_for_session(session.address, self.limits)
        if isinstance(found, PushRefusal):
            return found
        if found is not None:
            found.evict()
        self.clients.add_session(session)
        return None

    def add_subscription(self, address: bytes, held: int) -> PushRefusal | None:
        """To a session that holds so many."""
        session = Session(self.clients, address)
        session.answers = dict.fromkeys(range(held), PushedAnswer(b"\0", 1, None, address))
        return self.clients.add_subscription(session, self.limits)


def add(limited: Limited, address: bytes) -> PushRefusal | None:
    return limited.add_session(Session(limited.clients, address))


def sessions(limited: Limited, *addresses: bytes) -> list[Session]:
    """One session from each of these addresses."""
    made = [Session(limited.clients, address) for address in addresses]
    assert {limited.add_session(each) for each in made} <= {None}
    return made


def test_an_address_has_sixteen_sessions_at_most() -> None:
    limited = Limited()
    first, *_ = sessions(limited, *[ONE] * SESSIONS_OF_ADDRESS)
    assert add(limited, ONE) is PushRefusal.SESSIONS
    assert add(limited, TWO) is None
    limited.clients.remove_session(first)
    assert add(limited, ONE) is None


def test_all_addresses_together_have_so_many_sessions() -> None:
    limited = Limited(sessions=1)
    assert add(limited, ONE) is None
    assert add(limited, TWO) is PushRefusal.SESSIONS


def test_where_all_sessions_are_taken_the_address_with_the_most_loses_its_oldest_to_one_with_fewer() -> None:
    limited = Limited(sessions=5)
    oldest, second, *others = sessions(limited, ONE, ONE, ONE, TWO, TWO)
    assert add(limited, THREE) is None
    assert (oldest.is_evicted, limited.counts.sessions) == (True, 5)
    assert add(limited, THREE) is PushRefusal.SESSIONS, "all have one or two"
    assert not any(each.is_evicted for each in (second, *others))
    assert limited.counts.ended == {SessionEnd.EVICTED: 1}


def test_addresses_with_many_sessions_leave_one_to_each_of_as_many_others_as_there_are_sessions() -> None:
    limited = Limited(sessions=64)
    sessions(limited, *(bytes([10, 0, 0, last]) for last in range(4) for _ in range(SESSIONS_OF_ADDRESS)))
    caches = [bytes([10, 0, 1, last]) for last in range(60)]
    made = sessions(limited, *caches)
    assert not any(each.is_evicted for each in made)
    assert limited.counts.sessions == 64
    assert [len(limited.clients._sessions[bytes([10, 0, 0, last])]) for last in range(4)] == [1] * 4


def test_a_session_has_so_many_subscriptions_and_its_address_twice_as_many() -> None:
    limited = Limited(subscriptions=3)
    assert [limited.add_subscription(ONE, held) for held in range(4)] == [None] * 3 + [PushRefusal.SUBSCRIPTIONS]
    assert [limited.add_subscription(ONE, held) for held in range(3)] == [None] * 3
    assert limited.add_subscription(ONE, 0) is PushRefusal.SUBSCRIPTIONS
    assert limited.add_subscription(TWO, 0) is None


def test_there_is_no_subscription_beyond_the_memory() -> None:
    limited = Limited(memory=2 * SUBSCRIPTION)
    added = [limited.add_subscription(address, 0) for address in (ONE, TWO, THREE)]
    assert added == [None, None, PushRefusal.MEMORY]


def filled(limited: Limited, address: bytes) -> int:
    """The octets that an address holds once it gets nothing more."""
    while (refusal := limited.add_subscription(address, 0)) is None:
        pass
    assert refusal is PushRefusal.SHARE
    return limited.counts.memory.of(address)


def test_an_address_holds_at_most_half_of_what_all_others_leave() -> None:
    memory = 1 << 20
    limited = Limited(subscriptions=10_000, memory=memory)
    for number, address in enumerate((ONE, TWO, THREE), start=1):
        assert filled(limited, address) == pytest.approx(memory / 2**number, abs=2 * SUBSCRIPTION)
    assert limited.add_subscription(b"\x0a\0\0\4", 0) is None


def test_everything_is_given_back_in_any_order() -> None:
    limited = Limited()
    (session,) = sessions(limited, ONE)
    limited.add_subscription(ONE, 0)
    session.end = SessionEnd.SLOW
    limited.clients.remove_session(session)
    assert known_addresses(limited.clients) == 1
    limited.clients.remove_subscription(session)
    assert known_addresses(limited.clients) == 0
    assert limited.counts == PushCounts(ended=limited.counts.ended)
    assert limited.counts.octets == 0
    assert limited.counts.ended == {SessionEnd.SLOW: 1}
    assert limited.clients.room_for_session(TWO, PushLimits(sessions=0)) is PushRefusal.SESSIONS


def test_what_an_address_holds_is_known_of_all_listeners() -> None:
    here = Limited(sessions=1)
    there = Limited(sessions=1, clients=here.clients)
    sessions(there, ONE)
    assert add(here, ONE) is PushRefusal.SESSIONS
