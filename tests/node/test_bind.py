"""`bind` by interface and by label, in a network namespace of its own."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.namespaced_node import Namespace, namespace, set_sysctl
from tests.support.server_process import launched, serving, until
from topodns.net.sockets import ListenError, open_tcp, open_udp
from topodns.netlink.route import addresses_of, is_tentative

COREFILE = ".:53 {{\n    bind {words}\n    hosts {{\n        10.9.9.9 web.test\n    }}\n}}\n"
TENTATIVE = "fe80::99%pods0"


@pytest.fixture
def pods() -> Iterator[Namespace]:
    """A namespace with the interface pods0, which has 10.77.0.1, 10.77.0.2 by the label pods0:dns, and fe80::77."""
    with namespace("bind") as made:
        made.run("ip", "link add pods0 type veth peer name pods1")
        made.run("ip", "link set pods0 addrgenmode none")
        made.run("ip", "addr add 10.77.0.1/24 dev pods0")
        made.run("ip", "addr add 10.77.0.2/24 dev pods0 label pods0:dns")
        made.run("ip", "addr add fe80::77/64 dev pods0 nodad")
        made.run("ip", "link set pods1 up")
        made.run("ip", "link set pods0 up")
        yield made


def dig(where: Namespace, server: str) -> str:
    """What `dig +short @SERVER web.test` prints; "" without a reply."""
    try:
        return where.run("dig", f"+short +time=1 +tries=1 @{server} web.test").strip()
    except subprocess.CalledProcessError:
        return ""


def test_an_interface_has_all_its_addresses_link_local_ones_of_ipv6_too(pods: Namespace, tmp_path: Path) -> None:
    with pods.entered(), serving(tmp_path, COREFILE.format(words="pods0"), port=53):
        assert [dig(pods, at) for at in ("10.77.0.1", "10.77.0.2", "fe80::77%pods0")] == ["10.9.9.9"] * 3
        assert dig(pods, "127.0.0.1") == ""


def test_a_label_has_its_own_address(pods: Namespace, tmp_path: Path) -> None:
    with pods.entered(), serving(tmp_path, COREFILE.format(words="pods0:dns"), port=53):
        assert [dig(pods, at) for at in ("10.77.0.2", "10.77.0.1")] == ["10.9.9.9", ""]


@pytest.mark.parametrize("word", ["pods0:web", "pods0:", "lo:1"])
def test_a_label_that_does_not_exist_is_refused(pods: Namespace, tmp_path: Path, word: str) -> None:
    (tmp_path / "Corefile").write_text(COREFILE.format(words=word))
    with pods.entered(), launched(tmp_path, "-conf", "Corefile") as server:
        assert server.wait() == 1
        problem = f"Corefile:2: 'bind' has '{word}', expected an IP address or an interface of this machine"
        assert server.errors().strip() == problem


def test_a_tentative_address_is_listened_on_and_answers_once_it_is_usable(pods: Namespace, tmp_path: Path) -> None:
    """After `ip link set up` an address is tentative for a second or more (RFC 4862 section 5.4)."""
    set_sysctl(pods, "net/ipv6/conf/pods0/dad_transmits", "3")
    pods.run("ip", "addr add fe80::99/64 dev pods0")
    with pods.entered():
        assert is_tentative(TENTATIVE)
        assert TENTATIVE in (addresses_of("pods0") or ())
        with serving(tmp_path, COREFILE.format(words="pods0"), port=53) as server:
            assert server.lines(f"[INFO] listen [{TENTATIVE}]:53: a tentative address")
            assert dig(pods, "10.77.0.1") == "10.9.9.9"
            until(lambda: dig(pods, TENTATIVE) == "10.9.9.9", "an answer at the address that was tentative", 20)


def test_an_address_that_the_machine_does_not_have_is_no_tentative_one(pods: Namespace) -> None:
    with pods.entered():
        for open_sockets in (open_udp, open_tcp):
            with pytest.raises(ListenError, match="cannot assign requested address"):
                open_sockets("fe80::1234%pods0", 53)
            for sock in open_sockets("fe80::77%pods0", 53):
                with sock:
                    assert sock.getsockname()[3] == socket.if_nametoindex("pods0")
