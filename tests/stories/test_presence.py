"""What instances of one node tell of each other."""

import secrets
import subprocess
import sys

import pytest

from tests.support.process import ROOT, until
from topodns.edge.host_network.presence import Presence, others_serve

ANOTHER = """
import sys
from topodns.edge.host_network.presence import Presence
presence = Presence(sys.argv[1])
presence.announce()
print("there", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def interface() -> str:
    """A name that nobody else on this machine uses now."""
    return f"t{secrets.token_hex(5)}"


def test_alone_there_are_no_others_and_nobody_stays(interface: str) -> None:
    presence = Presence(interface)
    presence.announce()
    assert not presence.others()
    assert presence.successor() is None
    assert not presence.end()


def test_one_that_does_not_serve_yet_is_there_but_nothing_is_left_to_it(interface: str) -> None:
    old, new = Presence(interface), Presence(interface)
    old.announce()
    assert new.others()
    assert old.others()
    assert not old.end()
    new.end()


def test_the_old_one_leaves_to_the_second_of_a_group_and_the_new_one_to_the_first(interface: str) -> None:
    old, new = Presence(interface), Presence(interface)
    old.announce()
    new.announce()
    assert old.successor() == 1
    assert new.successor() == 0
    assert new.end()
    assert not old.others()
    assert not old.end()


def test_instances_of_another_link_are_no_company(interface: str) -> None:
    one, other = Presence(interface), Presence(interface + "x")
    other.announce()
    assert not one.others()
    assert not others_serve(interface)
    assert others_serve(interface + "x")
    one.end()
    other.end()


def test_whoever_is_killed_is_not_there_any_more(interface: str) -> None:
    command = [sys.executable, "-c", ANOTHER, interface]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        assert others_serve(interface)
        process.kill()
        process.wait()
        until(lambda: not others_serve(interface), "nobody serves")
