"""The `k8s_external` directive of a server block as one value, which the functions of this folder get."""

from dataclasses import dataclass

from topodns.plugins.k8s_external.settings import K8sExternal
from topodns.plugins.kubernetes.zone import KubernetesZone


@dataclass(frozen=True, slots=True, eq=False)
class K8sExternalZone:
    """Names under the origins of one `k8s_external` directive.

    `kubernetes` is the block's directive `kubernetes` without `topology` and `noendpoints`, which do not apply to
    clients outside the cluster.
    """

    settings: K8sExternal
    kubernetes: KubernetesZone
