"""The watchdog's decisions, by messages of the node cache and times."""

from tests.support.host_network_builder import host_network
from topodns.hostnet.iptables import Tools
from topodns.hostnet.watchdog import EXPIRE, KEEPALIVE_TIMEOUT, LEAVE, RENEW, Supervision
from topodns.hostnet.watchdog_launch import watchdog_input


def switched_on() -> Supervision:
    """At time 0."""
    made = Supervision(on=False)
    made.receive(RENEW, 0.0)
    made.switched(True, succeeded=True)
    return made


def test_the_first_renewal_switches_on() -> None:
    made = Supervision(on=False)
    assert made.due(0.0) is None
    made.receive(RENEW, 0.0)
    assert made.due(0.0) is True
    made.switched(True, succeeded=True)
    assert made.due(0.5) is None


def test_a_renewed_switch_stays_on() -> None:
    made = switched_on()
    for now in (0.5, 1.0, 1.5, 2.0):
        made.receive(RENEW, now)
        assert made.due(now + 0.9) is None


def test_n09_silence_switches_off_and_a_renewal_on_again() -> None:
    made = switched_on()
    assert made.due(KEEPALIVE_TIMEOUT - 0.01) is None
    assert made.due(KEEPALIVE_TIMEOUT) is False
    made.switched(False, succeeded=True)
    made.receive(RENEW, 7.0)
    assert made.due(7.0) is True


def test_n09_the_end_of_the_node_cache_switches_off_at_once() -> None:
    made = switched_on()
    made.end()
    assert made.due(0.1) is False


def test_expire_switches_off() -> None:
    made = switched_on()
    made.receive(EXPIRE, 0.1)
    assert made.due(0.1) is False


def test_of_several_messages_the_last_counts() -> None:
    made = switched_on()
    made.receive(RENEW + EXPIRE, 0.5)
    assert made.due(0.5) is False
    made.receive(EXPIRE + RENEW, 0.6)
    assert made.due(0.6) is None


def test_an_instance_that_has_left_is_not_switched_off() -> None:
    made = switched_on()
    made.receive(LEAVE, 0.5)
    made.end()
    assert made.due(60.0) is None


def test_a_switch_left_on_by_an_earlier_instance_is_switched_off_first() -> None:
    assert Supervision(on=None).due(0.0) is False


def test_a_failed_switch_off_is_still_due() -> None:
    made = switched_on()
    made.end()
    assert made.due(1.0) is False
    assert made.due(2.0) is False
    assert made.timeout(2.0) == 0.2


def test_n09_a_redirect_that_is_on_for_one_family_is_switched_off_when_the_node_cache_ends() -> None:
    """IPv4 was switched on before IPv6 failed."""
    made = Supervision(on=False)
    made.receive(RENEW, 0.0)
    made.switched(True, succeeded=False)
    assert made.due(0.5) is True
    assert made.timeout(0.5) == 0.2
    made.end()
    assert made.due(0.6) is False
    made.switched(False, succeeded=True)
    assert made.due(0.7) is None


def test_a_redirect_that_is_off_for_one_family_is_switched_on_by_a_renewal() -> None:
    """IPv4 was switched off before IPv6 failed."""
    made = switched_on()
    assert made.due(KEEPALIVE_TIMEOUT) is False
    made.switched(False, succeeded=False)
    made.receive(RENEW, 2.0)
    assert made.due(2.0) is True


def test_it_sleeps_until_the_silence_would_be_too_long_and_for_ever_when_off() -> None:
    made = switched_on()
    assert made.timeout(0.25) == KEEPALIVE_TIMEOUT - 0.25
    assert Supervision(on=False).timeout(0.0) is None


def test_its_input_names_every_program_with_the_rules_for_on_and_off() -> None:
    network = host_network("169.254.20.10,fd00::10")
    tools = [Tools(4, "/sbin/iptables-save", "/sbin/iptables-restore"), Tools(6, "/sbin/s", "/sbin/ip6tables-restore")]
    first, *fields = watchdog_input(network, tools, left_behind=True).split(b"\0")
    assert first == b"unknown"
    assert fields[::3] == [b"/sbin/iptables-restore", b"/sbin/ip6tables-restore"]
    assert [text.count(b"NOTRACK") for text in fields[1::3]] == [8, 8]
    assert [text.count(b"NOTRACK") for text in fields[2::3]] == [3, 3]  # for answers
    assert watchdog_input(network, tools, left_behind=False).startswith(b"off\0")
