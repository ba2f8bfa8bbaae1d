"""The cables of a lab: a bridge on the control plane, a veth pair to each node, static routes to each node's pods."""

from tests.kubelab.machine import IN, Machine
from tests.kubelab.options import API, API6, Node, Options

_FORWARDING = "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"
_NO_BRIDGE_FILTER = "cd /proc/sys/net/bridge && echo 0 > bridge-nf-call-iptables && echo 0 > bridge-nf-call-ip6tables"


def wire_control_plane(control: Machine, options: Options) -> None:
    control.ip_batch(
        [
            "link set lo up",
            "link add nodes type bridge mcast_snooping 0",
            "link set nodes up",
            *options.families((f"addr add {API}/24 dev nodes", f"addr add {API6}/64 dev nodes nodad")),
        ]
    )
    control.run("sh", "-c", f"{_FORWARDING}; {_NO_BRIDGE_FILTER} || true")


def wire_node(machine: Machine, control: Machine, node: Node, options: Options) -> None:
    control.ip_batch(
        [
            f"link add {node.name} type veth peer name eth0 netns {machine.pid}",
            f"link set {node.name} master nodes up",
            *_routes(node, options),
        ]
    )
    ipv4, ipv6 = node.ips
    machine.ip_batch(
        [
            "link set lo up",
            "link set eth0 up",
            *options.families((f"addr add {ipv4}/24 dev eth0", f"addr add {ipv6}/64 dev eth0 nodad")),
            *options.families((f"route add default via {API}", f"route add default via {API6}")),
            *(route for other in options.nodes if other != node for route in _routes(other, options)),
        ]
    )
    machine.run("sh", "-c", f"{_FORWARDING} && nft -f {IN}/masquerade.nft")


def _routes(node: Node, options: Options) -> list[str]:
    pairs = zip(node.pod_cidrs, node.ips, strict=True)
    return options.families([f"route add {cidr} via {address}" for cidr, address in pairs])
