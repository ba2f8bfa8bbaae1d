"""A node of a cluster in network namespaces: the node, a pod behind it, and the cluster DNS behind a kube-proxy.

One process plays all parts: a socket belongs to the namespace that its thread was in when it was opened. Needs root.
"""

import ctypes
import os
import selectors
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count, product
from pathlib import Path
from typing import Final, Literal

LINK_LOCAL: Final = {4: "169.254.20.10", 6: "fd00:20::10"}
CLUSTER_DNS: Final = {4: "10.96.0.10", 6: "fd00:96::a"}
PROGRAMS: Final = ("ip", "nft", "iptables", "ip6tables", "iptables-legacy", "conntrack")

Protocol = Literal["udp", "tcp"]

_POD: Final = {4: "10.244.1.2", 6: "fd00:244:1::2"}
_BACKEND: Final = {4: "10.50.0.2", 6: "fd00:50::2"}
_PREFIX: Final = {4: 24, 6: 64}
_NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET of linux/sched.h; os.setns is there from Python 3.12 on
_ANSWER_TIME: Final = 0.3  # seconds; everything is on this machine

_libc = ctypes.CDLL(None, use_errno=True)
_counter = count(1)


def why_impossible() -> str:
    """Why no namespaces can be had here, in one line; "" where they can."""
    if os.geteuid() != 0:
        return "this needs root"
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"{', '.join(missing)} missing (Debian: iproute2 nftables iptables conntrack)"
    try:
        with namespace("probe") as probe:
            probe.run("nft", "add table inet probe")
            probe.run("iptables", "-t raw -S")
    except subprocess.CalledProcessError as failed:
        return f"{' '.join(map(str, failed.cmd))}: {str(failed.stderr).strip()}"
    return ""


class Namespace:
    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, program: str, arguments: str | Sequence[str], text: str = "") -> str:
        """The output of the program; CalledProcessError where it fails."""
        words = arguments.split() if isinstance(arguments, str) else list(arguments)
        with self.entered():
            done = subprocess.run([program, *words], input=text, capture_output=True, text=True, check=True)
        return done.stdout

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This thread, and those and the processes that it starts meanwhile, are in the namespace."""
        with open("/proc/thread-self/ns/net", "rb") as before, open(f"/run/netns/{self.name}", "rb") as there:
            _set_namespace(there.fileno())
            try:
                yield
            finally:
                _set_namespace(before.fileno())


def _set_namespace(descriptor: int) -> None:
    if _libc.setns(descriptor, _NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@contextmanager
def namespace(role: str) -> Iterator[Namespace]:
    name = f"topodns-{os.getpid()}-{next(_counter)}-{role}"
    subprocess.run(["ip", "netns", "add", name], check=True, capture_output=True, text=True)
    try:
        made = Namespace(name)
        made.run("ip", "link set lo up")
        yield made
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def namespaces_of(pid: int) -> list[str]:
    """The names of those that a process made and has not taken away."""
    listed = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line.startswith(f"topodns-{pid}-")]


class Setup:
    """The node of `setup`. Every server answers with a word that names it."""

    def __init__(self, node: Namespace, pod: Namespace, cluster: Namespace, stack: ExitStack) -> None:
        self.node, self.pod, self.cluster = node, pod, cluster
        self._stack = stack

    def answer_on_node(self, *addresses: str, port: int = 53) -> None:
        """Something listens on the node, as a node cache would: before its addresses are there."""
        self._stack.enter_context(answering(self.node, "node", addresses, port))

    def is_tracked(self, address: str) -> bool:
        """Whether conntrack has an entry for a question to this address, on the node."""
        family = "ipv6" if ":" in address else "ipv4"
        return bool(self.node.run("conntrack", f"-L -f {family} -d {address}").strip())

    def forget_tracked(self) -> None:
        for family in ("ipv4", "ipv6"):
            with suppress(subprocess.CalledProcessError):  # there was nothing to forget
                self.node.run("conntrack", f"-D -f {family}")


@contextmanager
def setup() -> Iterator[Setup]:
    with ExitStack() as stack:
        node, pod, cluster = (stack.enter_context(namespace(role)) for role in ("node", "pod", "cluster"))
        _connect(node, pod, "pod0", _POD)
        _connect(node, cluster, "out0", _BACKEND)
        set_sysctl(node, "net/ipv4/ip_forward", "1")
        set_sysctl(node, "net/ipv6/conf/all/forwarding", "1")
        for version, program in ((4, "iptables-restore"), (6, "ip6tables-restore")):
            node.run(program, "--noflush", _kube_proxy(CLUSTER_DNS[version], _BACKEND[version]))
        stack.enter_context(answering(cluster, "cluster", tuple(_BACKEND.values()), 53))
        yield Setup(node, pod, cluster, stack)


def _connect(node: Namespace, other: Namespace, link: str, addresses: dict[int, str]) -> None:
    """A pair of links: the node is the other's gateway."""
    node.run("ip", f"link add {link} type veth peer name eth0 netns {other.name}")
    for version, address in addresses.items():
        gateway = address.removesuffix("2") + "1"
        for where, device, own in ((node, link, gateway), (other, "eth0", address)):
            nodad = "nodad" if version == 6 else ""
            where.run("ip", f"addr add {own}/{_PREFIX[version]} dev {device} {nodad}")
            where.run("ip", f"link set {device} up")
        other.run("ip", f"-{version} route add default via {gateway}")


def _kube_proxy(service: str, backend: str) -> str:
    """The rules of kube-proxy in iptables mode for one Service with one endpoint."""
    to = f"[{backend}]" if ":" in backend else backend
    lines = [
        f"-A {chain} -d {service} -p {protocol} -m {protocol} --dport 53 -j DNAT --to-destination {to}:53"
        for chain in ("PREROUTING", "OUTPUT")
        for protocol in ("udp", "tcp")
    ]
    return "\n".join(("*nat", *lines, f"-A POSTROUTING -d {backend} -j MASQUERADE", "COMMIT", ""))


def set_sysctl(where: Namespace, name: str, value: str) -> None:
    with where.entered():
        Path("/proc/sys", name).write_text(value)


def ask(where: Namespace, address: str, protocol: Protocol = "udp", port: int = 53) -> str:
    """The word of the server that answers there; "" where none does."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    kind = socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM
    with where.entered(), socket.socket(family, kind) as sock:
        sock.settimeout(_ANSWER_TIME)
        with suppress(OSError):
            sock.connect((address, port))
            sock.send(b"who is it?")
            return sock.recv(100).decode()
    return ""


@contextmanager
def answering(where: Namespace, word: str, addresses: Sequence[str], port: int) -> Iterator[None]:
    """Something answers there over UDP and TCP, whether the addresses are there or not."""
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        stop, stopped = socket.socketpair()
        for sock in (stop, stopped):
            stack.enter_context(sock)
        selector.register(stopped, selectors.EVENT_READ)
        with where.entered():
            for address, kind in product(addresses, (socket.SOCK_DGRAM, socket.SOCK_STREAM)):
                selector.register(stack.enter_context(_listening(address, kind, port)), selectors.EVENT_READ)
        thread = threading.Thread(target=_answer, args=(selector, stopped, word.encode()))
        thread.start()
        stack.callback(thread.join)
        stack.callback(stop.send, b"x")
        yield


def _listening(address: str, kind: socket.SocketKind, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(*((socket.IPPROTO_IPV6, 78) if ":" in address else (socket.IPPROTO_IP, 15)), 1)  # FREEBIND
    sock.bind((address, port))
    if kind == socket.SOCK_STREAM:
        sock.listen()
    return sock


def _answer(selector: selectors.BaseSelector, stopped: socket.socket, word: bytes) -> None:
    while True:
        for key, _ in selector.select():
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            if sock is stopped:
                return
            with suppress(OSError):
                if sock.type == socket.SOCK_DGRAM:
                    _, peer = sock.recvfrom(1500)
                    sock.sendto(word, peer)
                    continue
                connection, _ = sock.accept()
                with connection:
                    connection.settimeout(_ANSWER_TIME)
                    connection.recv(1500)
                    connection.send(word)
