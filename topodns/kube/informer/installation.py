"""Why an API server has nothing at the path of a custom resource: it is not installed, or in other versions only."""

import asyncio
from typing import Final

from topodns.cluster.decode.stream import UnreadableReply, read_group
from topodns.kube.client.contract import ApiError, KubeApi, read_body
from topodns.kube.informer.resources import Resource

DEADLINE: Final = 10.0  # seconds

_NOT_FOUND: Final = 404


async def reason_of_absence(api: KubeApi, resource: Resource) -> str:
    """A clause for the log and /ready, by the discovery document of the resource's API group (`/apis/GROUP`)."""
    missing = f"not installed: the cluster has no CustomResourceDefinition {resource.name}"
    wanted = _version(resource)
    if not wanted:
        return missing
    try:
        async with asyncio.timeout(DEADLINE):
            served = read_group(await read_body(api, f"/apis/{resource.group}"))
    except ApiError as error:
        return missing if error.status == _NOT_FOUND else f"not installed, or not in version {wanted}"
    except (TimeoutError, UnreadableReply):
        return f"not installed, or not in version {wanted}"
    if not served or wanted in served:
        return missing
    return f"the cluster has {resource.group} in version {', '.join(served)}, expected {wanted}"


def _version(resource: Resource) -> str:
    """The version in the path `/apis/GROUP/VERSION/...` that is tried last; "" if the path has another form."""
    match resource.paths[-1].split("/"):
        case ["", "apis", resource.group, version, _]:
            return version
    return ""
