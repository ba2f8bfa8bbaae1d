"""Requests of the locator that the API server refuses: a count of each, and log lines that name the missing part.

A missing part is a rule of RBAC or a CustomResourceDefinition. A refusal is logged when it begins and when it is over.
`what` is the target of the refused requests, as log lines name it: a collection (`podlocators`), `writes of` one, or
the Lease.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from topodns.cluster.model import LOCATOR_GROUP, LOCATOR_VERSION
from topodns.kube.client.contract import ApiError
from topodns.kube.client.official_client import OfficialClient, read_object
from topodns.locator.metrics import LocatorCounts
from topodns.locator.objects import POD_LOCATORS, LocatorKind

log = logging.getLogger(__name__)

REPEAT: Final = 600.0  # seconds after which the same problem is logged again

_RBAC: Final = "config/kubernetes/locator/rbac.yaml (chart: locator.enabled) has the rule"
_RBAC_OF_POD_LOCATORS: Final = (
    'the ClusterRole needs apiGroups: ["topodns.io"], resources: ["podlocators"], '
    'verbs: ["list", "watch", "create", "patch", "delete"] (chart: locator.kind=podlocator)'
)
_CRDS: Final = "apply config/kubernetes/locator/crds.yaml (chart: locator.crds)"
_FORBIDDEN, _NOT_FOUND, _CONFLICT = 403, 404, 409
_PASSING: Final = frozenset((0, 429))


class Refusals:
    """The refusals of one locator process, each with its `what`; `counts.refusals` has their number by reason."""

    def __init__(self, kind: LocatorKind, counts: LocatorCounts, clock: Callable[[], float] = time.monotonic) -> None:
        self._kind = kind
        self._counts = counts
        self._clock = clock
        self._logged: dict[str, tuple[str, float]] = {}

    async def report(self, what: str, client: OfficialClient, problem: ApiError) -> None:
        """Count a refusal of `what`; log it if its text is new, or was last logged REPEAT seconds ago or longer.

        A conflict (409) does neither. For a missing kind of locator (404) it asks the API server, by `client`, which
        versions are served, so that the log line names them. Raises nothing.
        """
        if problem.status == _CONFLICT:
            return  # another writer, of which the watch has an event
        if problem.status == _NOT_FOUND and self._kind.plural in what and "namespace" not in str(problem):
            self._say(what, await self._missing(client), "crd")
        else:
            self.report_plain(what, problem)

    def report_plain(self, what: str, problem: ApiError) -> None:
        """As `report`, but without a request to the API server, and a conflict counts, too."""
        if problem.status == _FORBIDDEN and "terminated" not in str(problem):  # nothing is created in such a namespace
            of_pod_locators = self._kind is POD_LOCATORS and self._kind.plural in what
            self._say(what, f"{problem}: {_RBAC_OF_POD_LOCATORS if of_pod_locators else _RBAC}", "rbac")
        else:
            self._say(what, str(problem), "api" if problem.status in _PASSING or problem.status >= 500 else "refused")

    def over(self, what: str) -> None:
        """Record that `what` has succeeded: log that, if a refusal of it was logged since its last success."""
        if self._logged.pop(what, None) is not None:
            log.info("locator: %s: no longer refused", what)

    def _say(self, what: str, text: str, reason: str) -> None:
        self._counts.refusals[reason] += 1
        logged, at = self._logged.get(what, ("", 0.0))
        if text != logged or self._clock() - at >= REPEAT:
            self._logged[what] = (text, self._clock())
            log.warning("locator: %s: %s", what, text)

    async def _missing(self, client: OfficialClient) -> str:
        """Why the kind is not served: no such group, or other versions of it."""
        try:
            group = await read_object(client, f"/apis/{LOCATOR_GROUP}")
        except ApiError:
            return f"the API server has no kind {self._kind.kind}: {_CRDS}"
        versions = [str(each.get("version")) for each in group.get("versions") or [] if isinstance(each, dict)]
        if LOCATOR_VERSION not in versions:
            served = ", ".join(versions)
            return f"the API server has {LOCATOR_GROUP} as {served}, expected {LOCATOR_VERSION}: {_CRDS}"
        return f"the API server has no kind {self._kind.kind} in {LOCATOR_GROUP}/{LOCATOR_VERSION}: {_CRDS}"
