"""A GET of something small from the API server."""

from collections.abc import Mapping
from typing import Final

from topodns.edge.kube_api.contract import ApiError, KubeApi

MAX_READ: Final = 4 << 20  # octets; etcd keeps no object above 1.5 MiB

_NOTHING: Final[Mapping[str, str]] = {}


async def read_body(api: KubeApi, path: str, parameters: Mapping[str, str] = _NOTHING) -> bytes:
    """The whole body of a 200 response. Raises ApiError."""
    content = bytearray()
    async with api.stream(path, parameters) as pieces:
        async for piece in pieces:
            content += piece
            if len(content) > MAX_READ:
                raise ApiError(0, f"the response to GET {path} is longer than {MAX_READ} octets")
    return bytes(content)
