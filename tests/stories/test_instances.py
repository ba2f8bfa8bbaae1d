"""Messages between instances of one node, and the senders that they believe."""

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from tests.support.server_process import ROOT, until
from topodns.hostnet import instances as instance_registry
from topodns.hostnet.instances import ACCEPTED, SLOTS, InstanceRegistry, any_instance_serves

ANOTHER = """
import sys, time
from topodns.hostnet.instances import InstanceRegistry
presence = InstanceRegistry(sys.argv[1])
presence.announce()
print("there", flush=True)
while True:
    presence.poll()
    time.sleep(0.01)
"""

Instances = Callable[[str], InstanceRegistry]


@pytest.fixture
def interface() -> str:
    """A name that nothing else on this machine uses now."""
    return f"t{secrets.token_hex(5)}"


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Instances]:
    """Makes instances in this process, which no test waits for: each hangs while another one is made."""
    monkeypatch.setattr(instance_registry, "PATIENCE", 0.01)
    made: list[InstanceRegistry] = []

    def make(interface: str) -> InstanceRegistry:
        made.append(InstanceRegistry(interface))
        for each in made:
            each.poll()
        return made[-1]

    yield make
    for each in made:
        each.end()
        each.close()


@contextmanager
def another(interface: str) -> Iterator[subprocess.Popen[bytes]]:
    """An instance in a process of its own, that serves."""
    command = [sys.executable, "-c", ANOTHER, interface]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"there\n"
            yield process
        finally:
            process.kill()


def names(interface: str) -> list[str]:
    return [f"\0topodns-host-network/{interface}/{slot}" for slot in range(SLOTS)]


def test_a_lone_instance_sees_no_others_and_has_no_successor(interface: str, begin: Instances) -> None:
    one = begin(interface)
    one.announce()
    assert not one.others()
    assert one.successor() is None
    assert not one.end()


def test_one_that_does_not_serve_yet_is_there_but_nothing_is_left_to_it(interface: str, begin: Instances) -> None:
    old, new = begin(interface), begin(interface)
    old.announce()
    assert new.others()
    assert old.others()
    assert not old.end()


def test_the_old_one_leaves_to_the_second_of_a_group_and_the_new_one_to_the_first(
    interface: str, begin: Instances
) -> None:
    old, new = begin(interface), begin(interface)
    old.announce()
    new.announce()
    assert old.successor() == 1
    assert new.successor() == 0
    assert new.end()
    assert not old.others()
    assert not old.end()


def test_of_two_instances_that_end_at_once_one_sees_no_other(interface: str, begin: Instances) -> None:
    one, two = begin(interface), begin(interface)
    one.announce()
    two.announce()
    assert [one.end(), two.end()] == [True, False]


def test_an_instance_says_which_sockets_are_its_own(interface: str, begin: Instances) -> None:
    old, new = begin(interface), begin(interface)
    with socket.socket() as first, socket.socket() as second:
        new.opened([first])
        new.opened([second])
        inodes = frozenset(os.fstat(each.fileno()).st_ino for each in (first, second))
        assert (new.own_sockets(), old.others_sockets(), old.own_sockets()) == (inodes, inodes, frozenset())
    with socket.socket() as third:
        new.opened([third])
        assert old.others_sockets() == {os.fstat(third.fileno()).st_ino}


def test_instances_of_another_link_are_no_company(interface: str, begin: Instances) -> None:
    with another(interface + "x"):
        assert not begin(interface).others()
        assert not any_instance_serves(interface)
        until(lambda: any_instance_serves(interface + "x"), "it is found at its own link")


def test_a_killed_instance_is_no_longer_seen(interface: str, begin: Instances) -> None:
    with another(interface) as process:
        one = begin(interface)
        until(lambda: one.successor() == 0, "an older one serves")
        until(lambda: any_instance_serves(interface), "found by a process that is no instance")
        process.kill()
        process.wait()
        assert not one.others()
        assert one.successor() is None
        assert not any_instance_serves(interface)


def test_a_later_start_finds_one_that_has_taken_the_second_name(interface: str, begin: Instances) -> None:
    first, second = begin(interface), begin(interface)
    first.end()
    third = begin(interface)
    second.announce()
    assert third.successor() == 0


def test_one_that_hangs_is_there_and_serves_nothing(interface: str, begin: Instances) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as hung:
        hung.bind(names(interface)[0])
        hung.listen()
        one = begin(interface)
        assert one.others()
        assert one.successor() is None
        assert not any_instance_serves(interface)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_socket_of_another_user_at_our_name_is_no_instance(
    interface: str, begin: Instances, caplog: pytest.LogCaptureFixture
) -> None:
    os.seteuid(65534)
    try:
        stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        stranger.bind(names(interface)[0])
        stranger.listen()
    finally:
        os.seteuid(0)
    with stranger:
        one = begin(interface)
        accepted, _ = stranger.accept()
        with accepted:
            assert not one.others()
            assert not any_instance_serves(interface)
            assert f"@topodns-host-network/{interface}/0 belongs to user 65534" in caplog.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_messages_of_another_user_over_a_connection_are_not_read(interface: str, begin: Instances) -> None:
    one = begin(interface)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        os.seteuid(65534)
        try:
            stranger.connect(names(interface)[0])
        finally:
            os.seteuid(0)
        stranger.send(b"1 1 ")
        assert not one.others()
        assert one.successor() is None


def test_an_instance_without_a_name_finds_others_and_takes_a_name_when_one_is_free(
    interface: str, begin: Instances, caplog: pytest.LogCaptureFixture
) -> None:
    old = begin(interface)
    taken = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(SLOTS - 1)]
    for sock, name in zip(taken, names(interface)[1:], strict=True):
        sock.bind(name)
    new = begin(interface)
    assert "all taken" in caplog.text
    assert new.others()
    assert old.others()
    for sock in taken:
        sock.close()
    new.poll()
    old.end()
    third = begin(interface)
    new.announce()
    assert third.successor() == 0


def test_a_flood_of_connections_is_taken_in_a_few_at_a_time(interface: str, begin: Instances) -> None:
    one = begin(interface)
    flood = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK) for _ in range(60)]
    try:
        for sock in flood:
            sock.connect(names(interface)[0])
            sock.send(b"no words")
        one.poll()
        assert sum(is_heard(sock) for sock in flood) == ACCEPTED
        assert not one.others()
    finally:
        for sock in flood:
            sock.close()


def test_a_full_queue_of_connections_at_the_socket_is_logged(
    interface: str, begin: Instances, caplog: pytest.LogCaptureFixture
) -> None:
    """Any process may connect, and an instance that starts waits behind those that are not taken in yet."""
    with one_with_a_full_queue(names(interface)[0]), caplog.at_level("WARNING", "topodns"):
        assert not begin(interface).others()
    assert f"too many connections wait at the abstract socket @{names(interface)[0][1:]}" in caplog.text


@contextmanager
def one_with_a_full_queue(name: str) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, ExitStack() as stack:
        listener.bind(name)
        listener.listen(1)
        with suppress(BlockingIOError):
            for _ in range(10):
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
                stack.enter_context(sock).connect(name)
        yield


def is_heard(sock: socket.socket) -> bool:
    try:
        return bool(sock.recv(100))
    except BlockingIOError:
        return False
