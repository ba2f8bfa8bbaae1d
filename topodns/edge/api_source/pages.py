"""A list in pages, each small enough that reading it keeps no question waiting. The octets only."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from topodns.edge.api_source.company import ListWatch
from topodns.edge.api_source.resources import Resource
from topodns.edge.kube_api.contract import ApiError

log = logging.getLogger(__name__)

PAGE_SIZE: Final = 500  # objects
PAGE_DEADLINE: Final = 60.0  # seconds for one page
ONE_OBJECT_DEADLINE: Final = 10.0  # seconds, where no more than one object was ever asked for
# Octets. A page is split into its objects in one go, at some 1 ms a MiB, and 500 objects are 1 to 10 MiB. A page of one
# object always fits: etcd takes objects up to 1.5 MiB, which is less than 16 in any JSON.
MAX_PAGE: Final = 16 << 20
FEWER: Final = 4  # times fewer objects are asked for where a page is larger


class NoPage(ApiError):
    """No page has come of a request, though the server took it."""

    def __init__(self, problem: str) -> None:
        super().__init__(0, problem)


class Pages:
    """The pages of one list of `resource`, which the server has under `path`."""

    def __init__(self, api: ListWatch, path: str, resource: Resource, limit: int = PAGE_SIZE) -> None:
        self._api = api
        self._path = path
        self._resource = resource
        self._limit = limit
        self._deadline = ONE_OBJECT_DEADLINE if limit == 1 else PAGE_DEADLINE

    async def body(self, place: Mapping[str, str]) -> bytes:
        """The page at this place: a continue token or, for the first one, what the list may be like.

        Raises ApiError, also for a page that would be larger than MAX_PAGE with a single object.
        """
        while (found := await self._within_deadline(place)) is None:
            if self._limit == 1:
                raise NoPage(f"a page of one object is larger than {MAX_PAGE >> 20} MiB")
            before, self._limit = self._limit, max(1, self._limit // FEWER)
            log.info(
                "plugin/kubernetes: list of %s: %d objects are more than %d MiB; asking for %d at a time",
                self._resource.name,
                before,
                MAX_PAGE >> 20,
                self._limit,
            )
        return found

    async def _within_deadline(self, place: Mapping[str, str]) -> bytes | None:
        """None where it is too large."""
        try:
            async with asyncio.timeout(self._deadline):
                return await self._read({**self._resource.selectors, "limit": str(self._limit), **place})
        except TimeoutError:
            raise NoPage(f"no complete page within {self._deadline:g} s") from None

    async def _read(self, parameters: Mapping[str, str]) -> bytes | None:
        pieces, size = [], 0
        async with self._api.stream(self._path, parameters) as body:
            async for piece in body:
                size += len(piece)
                if size > MAX_PAGE:
                    return None
                pieces.append(piece)
        return b"".join(pieces)
