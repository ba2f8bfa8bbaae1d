"""The command lines of the control plane: etcd, API server, controller manager, scheduler, and kwok, which is for where
it is wanted. Starts nothing itself.
"""

from tests.kubelab.kwok import define_kwok
from tests.kubelab.machine import IN, Machine
from tests.kubelab.options import API, NODE_GRACE, SERVICE_CIDRS, Options

NAME = "control-plane"
AUDIT_LOG = "log/audit.log"  # of the control plane's directory

# One line of JSON for each request, once it has ended, and for a watch once it has begun; of kube-system only.
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts:kube-system"]}, {"level": "None"}],
}


def define_control_plane(machine: Machine, options: Options) -> None:
    machine.define("etcd", _etcd())
    if options.audit:
        machine.write("audit-policy.json", _AUDIT_POLICY)
    machine.define("kube-apiserver", _api_server(options))
    machine.define("kube-controller-manager", _controller_manager())
    machine.define("kube-scheduler", _lone("kube-scheduler"))
    define_kwok(machine)


def _etcd() -> list[str]:
    client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
    return [
        "etcd",
        f"--data-dir={IN}/var/etcd",
        "--unsafe-no-fsync",
        "--log-level=warn",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
    ]


def _api_server(options: Options) -> list[str]:
    return [
        "kube-apiserver",
        "--etcd-servers=http://127.0.0.1:2379",
        "--bind-address=0.0.0.0",
        "--secure-port=6443",
        f"--advertise-address={API}",
        f"--service-cluster-ip-range={','.join(options.families(SERVICE_CIDRS))}",
        f"--tls-cert-file={IN}/apiserver.crt",
        f"--tls-private-key-file={IN}/apiserver.key",
        f"--client-ca-file={IN}/ca.crt",
        f"--token-auth-file={IN}/tokens.csv",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--kubelet-client-certificate={IN}/kubelet-client.crt",
        f"--kubelet-client-key={IN}/kubelet-client.key",
        "--kubelet-preferred-address-types=InternalIP",
        "--allow-privileged=true",
        "--enable-aggregator-routing=true",  # webhooks by endpoint: no kube-proxy runs here
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={IN}/sa.pub",
        f"--service-account-signing-key-file={IN}/sa.key",
        *(_audit() if options.audit else ()),
    ]


def _audit() -> list[str]:
    return [
        f"--audit-policy-file={IN}/audit-policy.json",
        f"--audit-log-path={IN}/{AUDIT_LOG}",
        "--audit-log-mode=blocking-strict",  # what was answered has been noted
    ]


def _lone(name: str) -> list[str]:
    """Without leader election, which has no purpose here, and with rate limits that fit many requests."""
    return [
        name,
        f"--kubeconfig={IN}/{name}.kubeconfig",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def _controller_manager() -> list[str]:
    return [
        *_lone("kube-controller-manager"),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={IN}/sa.key",
        f"--root-ca-file={IN}/ca.crt",
        f"--cluster-signing-cert-file={IN}/ca.crt",
        f"--cluster-signing-key-file={IN}/ca.key",
        f"--flex-volume-plugin-dir={IN}/var/volumeplugins",
        "--node-monitor-period=1s",
        f"--node-monitor-grace-period={NODE_GRACE}s",
    ]
