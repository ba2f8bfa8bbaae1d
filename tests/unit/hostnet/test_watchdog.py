"""The supervisor's decisions: words, times, and the switch's state after them."""

from tests.support.host_network_builder import host_network
from topodns.hostnet.iptables import Tools
from topodns.hostnet.watchdog import EXPIRE, LEAVE, RENEW, SILENCE, Supervision
from topodns.hostnet.watchdog_launch import write_orders


def switched_on() -> Supervision:
    """At time 0."""
    made = Supervision(position=False)
    made.hear(RENEW, 0.0)
    made.threw(True)
    return made


def test_the_first_renewal_switches_on() -> None:
    made = Supervision(position=False)
    assert made.due(0.0) is None
    made.hear(RENEW, 0.0)
    assert made.due(0.0) is True
    made.threw(True)
    assert made.due(0.5) is None


def test_a_renewed_switch_stays_on() -> None:
    made = switched_on()
    for now in (0.5, 1.0, 1.5, 2.0):
        made.hear(RENEW, now)
        assert made.due(now + 0.9) is None


def test_n09_silence_switches_off_and_a_word_on_again() -> None:
    made = switched_on()
    assert made.due(SILENCE - 0.01) is None
    assert made.due(SILENCE) is False
    made.threw(False)
    made.hear(RENEW, 7.0)
    assert made.due(7.0) is True


def test_n09_the_end_of_the_node_cache_switches_off_at_once() -> None:
    made = switched_on()
    made.end()
    assert made.due(0.1) is False


def test_the_switch_goes_off_at_the_word_expire() -> None:
    made = switched_on()
    made.hear(EXPIRE, 0.1)
    assert made.due(0.1) is False


def test_of_several_words_the_last_counts() -> None:
    made = switched_on()
    made.hear(RENEW + EXPIRE, 0.5)
    assert made.due(0.5) is False
    made.hear(EXPIRE + RENEW, 0.6)
    assert made.due(0.6) is None


def test_an_instance_that_has_left_is_not_switched_off() -> None:
    made = switched_on()
    made.hear(LEAVE, 0.5)
    made.end()
    assert made.due(60.0) is None


def test_a_switch_left_on_by_an_earlier_instance_is_switched_off_first() -> None:
    assert Supervision(position=None).due(0.0) is False


def test_a_failed_switch_off_is_still_due() -> None:
    made = switched_on()
    made.end()
    assert made.due(1.0) is False
    assert made.due(2.0) is False
    assert made.patience(2.0) == 0.2


def test_it_sleeps_until_the_silence_would_be_too_long_and_for_ever_when_off() -> None:
    made = switched_on()
    assert made.patience(0.25) == SILENCE - 0.25
    assert Supervision(position=False).patience(0.0) is None


def test_its_orders_name_every_program_with_its_input_for_on_and_off() -> None:
    network = host_network("169.254.20.10,fd00::10")
    tools = [Tools(4, "/sbin/iptables-save", "/sbin/iptables-restore"), Tools(6, "/sbin/s", "/sbin/ip6tables-restore")]
    first, *fields = write_orders(network, tools, left_behind=True).split(b"\0")
    assert first == b"unknown"
    assert fields[::3] == [b"/sbin/iptables-restore", b"/sbin/ip6tables-restore"]
    assert [text.count(b"NOTRACK") for text in fields[1::3]] == [8, 8]
    assert [text.count(b"NOTRACK") for text in fields[2::3]] == [3, 3]  # for answers
    assert write_orders(network, tools, left_behind=False).startswith(b"off\0")
