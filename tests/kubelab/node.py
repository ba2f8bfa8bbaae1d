"""Configuration of a node: command lines and files of containerd, CNI, kubelet and kube-proxy, and its Node
object. Starts nothing itself.
"""

import resource
from typing import Any, Final

from tests.kubelab.machine import IN, Machine
from tests.kubelab.options import NODE_LEASE, POD_CIDRS, Node, Options

_CONTAINERD: Final = f"""version = 3
root = '/var/lib/containerd'
state = '/run/containerd'
oom_score = 0
[grpc]
  address = '/run/containerd/containerd.sock'
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'localhost/pause:1'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = '{IN}/bin/runc'
  SystemdCgroup = false
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['/opt/cni/bin']
  conf_dir = '/etc/cni/net.d'
"""


def define_node(machine: Machine, node: Node, options: Options) -> None:
    machine.write("containerd.toml", _CONTAINERD)
    machine.define("containerd", ["containerd", "--config", f"{IN}/containerd.toml"])
    machine.write("etc.upper/cni/net.d/10-pods.conflist", _cni(node, options))
    machine.write("masquerade.nft", _masquerade(options))
    machine.write("kubelet.json", _kubelet(options))
    machine.define("kubelet", _kubelet_command(node, options))
    machine.write("kube-proxy.json", _kube_proxy(node, options))
    machine.define("kube-proxy", ["kube-proxy", f"--config={IN}/kube-proxy.json", "--v=1"])


def node_object(node: Node, options: Options) -> dict[str, Any]:
    """With the podCIDR, which a kubelet cannot set itself; it completes the object that it finds."""
    cidrs = options.families(node.pod_cidrs)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": node.labels},
        "spec": {"podCIDR": cidrs[0], "podCIDRs": cidrs},
    }


def _cni(node: Node, options: Options) -> dict[str, Any]:
    """Each pod on a cable of its own: with a bridge, a reply within the node could slip past the node's NAT."""
    addresses = {
        "type": "host-local",
        "dataDir": "/run/cni-ipam",
        "ranges": [[{"subnet": cidr}] for cidr in options.families(node.pod_cidrs)],
        "routes": [{"dst": destination} for destination in options.families(("0.0.0.0/0", "::/0"))],
    }
    cable = {"type": "ptp", "ipMasq": False, "ipam": addresses}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [cable, ports]}


def _masquerade(options: Options) -> str:
    """As flannel, kindnet and others do: pods keep their address among pods, and wear the node's towards all else."""
    tables = zip(options.families(("ip", "ip6")), options.families(POD_CIDRS), strict=True)
    return "".join(
        f"""table {family} kubelab {{
  chain postrouting {{
    type nat hook postrouting priority srcnat
    {family} saddr {pods} {family} daddr != {pods} masquerade
  }}
}}
"""
        for family, pods in tables
    )


def _kubelet_command(node: Node, options: Options) -> list[str]:
    labels = ",".join(f"{key}={value}" for key, value in node.labels.items())
    return [
        "kubelet",
        f"--config={IN}/kubelet.json",
        f"--kubeconfig={IN}/kubelet.kubeconfig",
        f"--hostname-override={node.name}",
        f"--node-ip={','.join(options.families(node.ips))}",
        f"--node-labels={labels}",
        "--v=1",
    ]


def _kubelet(options: Options) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": ["pods"],
        "oomScoreAdj": 0,  # lowering it needs CAP_SYS_RESOURCE
        "maxOpenFiles": _open_files(),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{IN}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "clusterDNS": options.cluster_dns.split(","),
        "clusterDomain": "cluster.local",
        "resolvConf": "/etc/resolv.conf",
        "nodeLeaseDurationSeconds": NODE_LEASE,
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }


def _open_files() -> int:
    """The kubelet's default, or the hard limit: raising that needs CAP_SYS_RESOURCE."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 1_000_000 if limit == resource.RLIM_INFINITY else min(limit, 1_000_000)


def _kube_proxy(node: Node, options: Options) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": options.proxy_mode,
        "clientConnection": {"kubeconfig": f"{IN}/kube-proxy.kubeconfig"},
        "hostnameOverride": node.name,
        "oomScoreAdj": 0,
        "clusterCIDR": ",".join(options.families(POD_CIDRS)),
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "iptables": {"minSyncPeriod": "100ms"},
        "nftables": {"minSyncPeriod": "100ms"},
    }
