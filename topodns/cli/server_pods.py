"""Finds the Pods of servers for the kubectl plugin: ready ones with the labels of topodns, and their port of `ready`.

The chart and config/kubernetes set these labels. Users of any namespace can set them on Pods of their own: so
kube-system is searched first, and Pods in several namespaces are an error, which asks for `--namespace`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from topodns.cli.kubectl_client import Kubectl, KubectlError
from topodns.inspect.text import named

SELECTOR: Final = "app.kubernetes.io/name=topodns"


NAMESPACE: Final = "kube-system"


READY_PORT: Final = 8181


_READ_RULE: Final = '{apiGroups: [""], resources: [pods], verbs: [get, list]}'


_FORWARD_RULE: Final = '{apiGroups: [""], resources: [pods/portforward], verbs: [create]}'


_EVERYWHERE: Final = ("--all-namespaces",)


ApiObject = Mapping[str, Any]
"""An object of the API server, from JSON."""


class ServerPod(NamedTuple):
    """A Pod that runs a server, and the port of its `ready`."""

    namespace: str
    name: str
    port: int


def find_server_pods(kubectl: Kubectl, namespace: str, selector: str, name: str) -> list[ServerPod]:
    """The Pod `name` ("[NAMESPACE/]NAME"), or if that is "", the ready Pods with these labels, at least one.

    Searched in `namespace`; if that is "", in kube-system, then in all namespaces. Raises KubectlError.
    """
    if name:
        return [_server_pod(read_pod(kubectl, name, namespace or NAMESPACE))]
    pods = _labelled(kubectl, selector, f"--namespace={namespace or NAMESPACE}")
    if not namespace and not pods:
        pods = _labelled(kubectl, selector, *_EVERYWHERE)
    ready = sorted(_server_pod(pod) for pod in pods if _is_ready(pod))
    # Of Pods that are not ready too: users of another namespace may have the only ready one with the label.
    places = sorted({str(_part(pod, "metadata").get("namespace", "")) for pod in pods})
    if len(places) > 1:
        raise KubectlError(f"found topodns in several namespaces, {named(places)}: --namespace chooses one")
    if not ready:
        where = f"in namespace {namespace}" if namespace else "in any namespace"
        unready = f"; not ready: {named(map(pod_name, pods))}" if pods else ""
        raise KubectlError(
            f"found no ready Pod with the label {selector} {where}{unready}; --namespace, --selector and --server-pod "
            "choose others"
        )
    return ready


def read_pod(kubectl: Kubectl, name: str, namespace: str = "") -> ApiObject:
    """The Pod `[NAMESPACE/]NAME`, by default in `namespace`; with "" in that of kubectl's context.

    Raises KubectlError.
    """
    place, separator, bare = name.rpartition("/")
    place = place if separator else namespace
    scope = (f"--namespace={place}",) if place else ()
    return _get(kubectl, "get", ("pod", bare), scope)


def why_no_forward(kubectl: Kubectl, pod: ServerPod) -> str:
    """The RBAC rule that lets the user forward a port of this Pod, as the end of a message; "" if RBAC lets them."""
    allowed = kubectl.is_allowed("create", "pods", "--subresource=portforward", f"--namespace={pod.namespace}")
    return "" if allowed else f"; RBAC denies it: in namespace {pod.namespace} the user needs {_FORWARD_RULE}"


def pod_name(pod: ApiObject) -> str:
    """NAMESPACE/NAME of a Pod."""
    metadata = _part(pod, "metadata")
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"


def pod_addresses(pod: ApiObject) -> tuple[str, ...]:
    """The addresses of a Pod, its first one first; () if it has none yet."""
    status = _part(pod, "status")
    listed = [str(each["ip"]) for each in _parts(status, "podIPs") if each.get("ip")]
    return tuple(listed) or ((str(status["podIP"]),) if status.get("podIP") else ())


def _labelled(kubectl: Kubectl, selector: str, scope: str) -> list[ApiObject]:
    found = _get(kubectl, "list", ("pods", f"--selector={selector}"), (scope,))
    return list(_parts(found, "items"))


def _get(kubectl: Kubectl, verb: str, words: tuple[str, ...], scope: tuple[str, ...]) -> ApiObject:
    try:
        return kubectl.get(*words, *scope)
    except KubectlError as problem:
        if kubectl.is_allowed(verb, "pods", *scope):
            raise
        where = " in a ClusterRole, or a --namespace" if scope == _EVERYWHERE else ""
        raise KubectlError(f"{problem}; RBAC denies it: the user needs {_READ_RULE}{where}") from None


def _server_pod(pod: ApiObject) -> ServerPod:
    metadata = _part(pod, "metadata")
    return ServerPod(str(metadata.get("namespace", "")), str(metadata.get("name", "")), ready_port(pod))


def _is_ready(pod: ApiObject) -> bool:
    """Whether the Pod's condition Ready is True, and it is not terminating."""
    if _part(pod, "metadata").get("deletionTimestamp"):
        return False
    conditions = _parts(_part(pod, "status"), "conditions")
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def ready_port(pod: ApiObject) -> int:
    """The port of `ready`: that of the readiness probe of /ready, else the one named `ready`, else 8181."""
    containers = list(_parts(_part(pod, "spec"), "containers"))
    ports = {each.get("name"): each.get("containerPort") for one in containers for each in _parts(one, "ports")}
    probes = (_part(_part(one, "readinessProbe"), "httpGet") for one in containers)
    probed = next((probe.get("port") for probe in probes if probe.get("path") == "/ready"), "ready")
    port = ports.get(probed, probed)
    return port if isinstance(port, int) and 0 < port < 65536 else READY_PORT


def _part(value: ApiObject, key: str) -> ApiObject:
    """The object below this key; an empty one if there is none."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _parts(value: ApiObject, key: str) -> Iterator[ApiObject]:
    """The objects in the array below this key; none if there is no array."""
    found = value.get(key)
    yield from (each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()
