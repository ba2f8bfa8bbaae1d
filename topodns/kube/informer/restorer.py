"""Requests objects of one kind that are left out (`cluster.namespace_budget`), once there is room for them again."""

import asyncio
from collections.abc import Mapping
from typing import Final

from topodns.cluster.decode.stream import Listed, UnreadableReply, read_listed, read_page
from topodns.cluster.model import ObjectKey, Upserted
from topodns.cluster.publishing_state import PublishingState
from topodns.kube.client.contract import ApiError
from topodns.kube.informer.lister import Lister, Pages

EVERY: Final = 2.0  # seconds between two looks for room
AT_ONCE: Final = 100  # objects that are requested between two looks, each by a request of its own
CUT_EVERY: Final = 60.0  # seconds between two lists of all objects of a namespace
_SHARE: Final = 16  # of the budget, that must be free for such a list


class Restorer:
    """Restores objects of the kind of `lister` to a cluster's state.

    Only lists are requested: the ClusterRole has no `get`.
    """

    def __init__(self, lister: Lister, published: PublishingState) -> None:
        self._lister = lister
        self._published = published
        self._resource = lister.progress.resource
        self._kind = lister.progress.resource.kind
        self._cut_listed = 0.0  # time of the last list of a namespace, in seconds of the loop's clock

    async def run(self) -> None:
        """Look for room until cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            if self._lister.sync.version is None or self._lister.progress.trouble is not None:
                continue
            try:
                await self._restore()
            except (ApiError, UnreadableReply):
                continue  # the watch reports what is wrong with the server

    async def _restore(self) -> None:
        for key in await self._returning():
            if self._published.budget.room_for(self._published.state.left_out.octets.get((self._kind, key), 0)):
                await self._list(key.namespace, {"fieldSelector": self._named(key)})
        budget, now = self._published.budget, asyncio.get_running_loop().time()
        if now - self._cut_listed < CUT_EVERY or not budget.room_for(budget.limit // _SHARE):
            return
        for namespace in [cut for kind, cut in budget.cut if kind == self._kind]:
            self._cut_listed = now
            budget.cut.discard((self._kind, namespace))
            try:
                await self._list(namespace, {})
            except BaseException:
                budget.cut.add((self._kind, namespace))
                raise
            self._published.settle(namespace)

    async def _returning(self) -> list[ObjectKey]:
        found: list[ObjectKey] = []
        async with self._lister.shared.turns.turn() as turn:
            for key in self._published.returning_steps(self._kind):
                if key is not None:
                    found.append(key)
                if len(found) == AT_ONCE:
                    break
                await turn.pause_if_due()
        return found

    def _named(self, key: ObjectKey) -> str:
        selectors = (self._resource.selectors.get("fieldSelector", ""), f"metadata.name={key.name}")
        return ",".join(filter(None, selectors))

    async def _list(self, namespace: str, parameters: Mapping[str, str]) -> None:
        """Take the objects of a namespace that have not changed since they were listed.

        Raises ApiError, UnreadableReply.
        """
        head, _, plural = self._lister.path.rpartition("/")
        pages = Pages(self._lister.shared.api, f"{head}/namespaces/{namespace}/{plural}", self._resource)
        changed, place = self._lister.sync.record_changes(), parameters
        try:
            while True:
                body = await pages.body(place)
                async with self._lister.shared.turns.turn() as turn:
                    page = read_page(self._kind, body)
                    for item in page.items:
                        listed = read_listed(self._kind, item)
                        if isinstance(listed, Listed) and listed.object.key not in changed:
                            self._published.apply(Upserted(listed.object))
                        await turn.pause_if_due()
                if not page.next_token:
                    return
                place = {**parameters, "continue": page.next_token}
        finally:
            self._lister.sync.stop_recording(changed)
