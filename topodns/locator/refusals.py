"""Requests of the locator that the API server refuses: a count of each, and log lines that name the missing part.

A missing part is a rule of RBAC or a CustomResourceDefinition. A refusal is logged when it begins and when it is over.
`what` is the target of the refused requests, as log lines name it: a collection (`podlocators`), `writes of` one, or
the Lease.
"""

import logging
import time
from typing import Final

from topodns.cluster.model import LOCATOR_GROUP, LOCATOR_VERSION
from topodns.kube.client.contract import ApiError
from topodns.kube.client.official_client import OfficialClient, read_object
from topodns.kube.informer.progress import Reports
from topodns.kube.informer.resources import Resource
from topodns.locator.metrics import LocatorCounts
from topodns.locator.objects import POD_LOCATORS, LocatorKind

REPEAT: Final = 600.0  # seconds after which the same problem is logged again

_RBAC: Final = "config/kubernetes/locator/rbac.yaml (chart: locator.enabled) has the rule"
_RBAC_OF_POD_LOCATORS: Final = (
    'the ClusterRole needs apiGroups: ["topodns.io"], resources: ["podlocators"], '
    'verbs: ["list", "watch", "create", "patch", "delete"] (chart: locator.kind=podlocator)'
)
_CRDS: Final = "apply config/kubernetes/locator/crds.yaml (chart: locator.crds)"
_FORBIDDEN, _NOT_FOUND, _CONFLICT, _GONE = 403, 404, 409, 410
_PASSING: Final = frozenset((0, 429))


class Refusals(Reports):
    """The refusals of one locator process, each with its `what`; `counts.refusals` has their number by reason.

    Those of lists and watches come as the reports of the reflectors.
    """

    def __init__(self, kind: LocatorKind, counts: LocatorCounts, client: OfficialClient) -> None:
        super().__init__("locator")
        self._kind = kind
        self._counts = counts
        self._client = client
        self._logged: dict[str, tuple[str, float]] = {}

    async def failed(self, resource: Resource, verb: str, error: ApiError, first: bool) -> None:
        if error.status == _NOT_FOUND and resource.custom:
            return  # not installed, as most clusters have no ServiceImports
        self._counts.restarts[resource.plural] += 1
        if error.status != _GONE:  # a new list follows, as it should
            await self.report(resource.plural, error)

    def recovered(self, resource: Resource) -> None:
        self.over(resource.plural)

    def implausible(self, resource: Resource, problem: str) -> None:
        self.say(f"a list of {resource.plural}: {problem}".replace(": it has", " has"))

    def rolled_back(self, resource: Resource, version: str, seen: str) -> None:
        self.say(f"{resource.plural}: the API server went back from resourceVersion {seen} to {version}: listed anew")

    async def report(self, what: str, problem: ApiError) -> None:
        """Count a refusal of `what`; log it if its text is new, or was last logged REPEAT seconds ago or longer.

        A conflict (409) does neither. For a missing kind of locator (404) it asks the API server which versions are
        served, so that the log line names them. Raises nothing.
        """
        if problem.status == _CONFLICT:
            return  # another writer, of which the watch has an event
        if problem.status == _NOT_FOUND and self._kind.plural in what and "namespace" not in str(problem):
            self._log(what, await self._missing(), "crd")
        else:
            self.report_plain(what, problem)

    def report_plain(self, what: str, problem: ApiError) -> None:
        """As `report`, but without a request to the API server, and a conflict counts, too."""
        if problem.status == _FORBIDDEN and "terminated" not in str(problem):  # nothing is created in such a namespace
            of_pod_locators = self._kind is POD_LOCATORS and self._kind.plural in what
            self._log(what, f"{problem}: {_RBAC_OF_POD_LOCATORS if of_pod_locators else _RBAC}", "rbac")
        else:
            self._log(what, str(problem), "api" if problem.status in _PASSING or problem.status >= 500 else "refused")

    def over(self, what: str) -> None:
        """Record that `what` has succeeded: log that, if a refusal of it was logged since its last success."""
        if self._logged.pop(what, None) is not None:
            self.say(f"{what}: no longer refused", logging.INFO)

    def _log(self, what: str, text: str, reason: str) -> None:
        self._counts.refusals[reason] += 1
        logged, at = self._logged.get(what, ("", 0.0))
        if text != logged or time.monotonic() - at >= REPEAT:
            self._logged[what] = (text, time.monotonic())
            self.say(f"{what}: {text}")

    async def _missing(self) -> str:
        """Why the kind is not served: no such group, or other versions of it."""
        try:
            group = await read_object(self._client, f"/apis/{LOCATOR_GROUP}")
        except ApiError:
            return f"the API server has no kind {self._kind.kind}: {_CRDS}"
        versions = [str(each.get("version")) for each in group.get("versions") or [] if isinstance(each, dict)]
        if LOCATOR_VERSION not in versions:
            served = ", ".join(versions)
            return f"the API server has {LOCATOR_GROUP} as {served}, expected {LOCATOR_VERSION}: {_CRDS}"
        return f"the API server has no kind {self._kind.kind} in {LOCATOR_GROUP}/{LOCATOR_VERSION}: {_CRDS}"
