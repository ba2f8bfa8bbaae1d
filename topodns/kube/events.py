"""Warning Events on Services and ServiceImports: topology keys that are invalid or have no effect, and objects left out
of the state.

Due Events are written one at a time while this replica holds the Lease. Failures affect nothing else, and no answer to
a query waits for any of it.

Events use the core group, not events.k8s.io, which has the same store: the latter rejects the timestamps that kubectl
shows, and does not exist before Kubernetes 1.19, while `spec.topologyKeys` does.
"""

import asyncio
import json
import logging
import math
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final, NamedTuple, TypeVar

from topodns.cluster.findings.finding import Finding
from topodns.cluster.model import ObjectKey
from topodns.kube.client.contract import ApiError, KubeApi, read_body
from topodns.kube.lease import Lease, decoded_object
from topodns.memory.bounded import TTLCache
from topodns.net.loop_timers import boot_clock
from topodns.time_slices import Job, do_in_slices

log = logging.getLogger(__name__)


REPEATED: Final = 3700.0  # seconds: kube-apiserver deletes an Event after an hour (--event-ttl) plus at most a minute
PER_MINUTE: Final = 10  # attempts for all Services together
DENIED: Final = 3600.0  # seconds between attempts where RBAC denies them

_MINUTE: Final = 60.0
_MOST: Final = int(PER_MINUTE * (2 * REPEATED / _MINUTE + 1))  # attempts in the longest time that one is remembered


class Due(NamedTuple):
    """The next Event, and the earliest time to write it, in seconds of the caller's clock."""

    at: float
    finding: Finding


class EventSchedule:
    """The schedule of Events: one per finding every REPEATED seconds while the finding lasts. No I/O.

    At most PER_MINUTE attempts a minute are made for all findings together; namespaces with due Events take turns, and
    within a namespace its Services do. `clock` gives seconds, from any start.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._wished: Sequence[Finding] = ()
        # Twice REPEATED, so that Services without any Event come before those whose Event is due again.
        self._tried: TTLCache[ObjectKey, float] = TTLCache(_MOST, 2 * REPEATED, clock)  # time of the last attempt
        self._settled: TTLCache[Finding, float] = TTLCache(_MOST, 2 * REPEATED, clock)
        self._denied: TTLCache[str, float] = TTLCache(_MOST, DENIED, clock)  # time of denial, by namespace
        self._attempts: deque[float] = deque(maxlen=PER_MINUTE)

    def report(self, findings: Sequence[Finding]) -> None:
        """Set all present findings; an earlier one that is missing has been fixed. Kinds not in REASONS are ignored.

        The caller does not change them any more.
        """
        self._wished = findings

    def next(self) -> Job[Due | None]:
        """The next Event, or None without findings; in a step for each finding, as there may be thousands.

        Among several due ones, the namespace that has waited longest is first, so that one with thousands does not
        starve the others, and of its Services the one that has waited longest. An attempt ends a wait even if it fails.
        """
        now, settled, denied = self._clock(), dict(self._settled.items()), dict(self._denied.items())
        tried = dict(self._tried.items())
        turns: dict[str, float] = {}  # by namespace
        for service, at in tried.items():
            turns[service.namespace] = max(at, turns.get(service.namespace, -math.inf))

        def due(finding: Finding) -> float:
            again = settled.get(finding, -math.inf) + REPEATED
            return max(now, again, denied.get(finding.subject.namespace, -math.inf) + DENIED)

        def rank(finding: Finding) -> tuple[float, float, float, ObjectKey, str]:
            service = finding.subject
            turn = turns.get(service.namespace, -math.inf)
            return due(finding), turn, tried.get(service, -math.inf), service, finding.text

        first: tuple[tuple[float, float, float, ObjectKey, str], Finding] | None = None
        for finding in self._wished:
            if finding.kind in REASONS:
                ranked = rank(finding), finding
                if first is None or ranked[0] < first[0]:
                    first = ranked
            yield
        return Due(max(first[0][0], self._allowed()), first[1]) if first is not None else None

    def attempted(self, service: ObjectKey) -> None:
        """Count an attempt to write an Event towards PER_MINUTE, and as the turn of this Service and its namespace."""
        self._attempts.append(self._clock())
        self._tried[service] = self._clock()

    def settled(self, finding: Finding) -> None:
        """Record that an Event was written or finally rejected: no retry for REPEATED seconds."""
        self._settled[finding] = self._clock()

    def denied(self, namespace: str) -> None:
        """Record that RBAC denies Events in this namespace: no attempt for DENIED seconds."""
        self._denied[namespace] = self._clock()

    def _allowed(self) -> float:
        return self._attempts[0] + _MINUTE if len(self._attempts) == PER_MINUTE else -math.inf


LEASE_NAME: Final = "topodns-events"
LIMIT: Final = 8.0  # seconds per step under the Lease; LIMIT + lease.SURE is less than lease.LEASE_SECONDS
TROUBLED: Final = 60.0  # seconds to wait after a transient failure

_FORBIDDEN, _CONFLICT = 403, 409
_PASSING: Final = (401, 408, 429)  # the transient statuses among 400 to 499

T = TypeVar("T")


class EventRecorder:
    """Writes Events to one API server.

    `counts` is by outcome: `written`, `present` (the same Event exists), `gone` (no such object), `denied`, `failed`.
    `connect` is called when the first Event is due; its connection is used for nothing else.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[KubeApi]],
        namespace: str,
        holder: str,
        counts: Counter[str],
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        """`clock`: that of the `Lease`."""
        self._connect = connect
        self._lease = Lease(namespace, LEASE_NAME, holder, clock)
        self._holder = holder
        self._counts = counts
        self._plan = EventSchedule(_now)
        self._news = asyncio.Event()
        self._api: KubeApi | None = None
        self._paused_until = 0.0
        self._said: set[int] = set()  # the HTTP statuses logged so far

    def report(self, findings: Sequence[Finding]) -> None:
        """Set the findings that exist now, in place of the earlier ones; `run` writes their Events later."""
        self._plan.report(findings)
        self._news.set()

    async def run(self) -> None:
        """Write due Events until cancelled, then close the connection."""
        try:
            while True:
                await self._write(await self._due())
        finally:
            if self._api is not None:
                await self._api.close()

    async def _due(self) -> Finding:
        """Wait until an Event is due and no pause is set. Returns its finding."""
        while True:
            self._news.clear()
            due = await do_in_slices(self._plan.next())
            if self._news.is_set():
                continue  # it may be fixed
            start = max(due.at, self._paused_until) if due is not None else None
            if due is not None and start is not None and start <= _now():
                return due.finding
            with suppress(TimeoutError):
                async with asyncio.timeout_at(start):
                    await self._news.wait()

    async def _write(self, finding: Finding) -> None:
        try:
            if self._api is None:
                self._api = await self._connect()
            wait = await _in_time(self._lease.hold(self._api))
        except ApiError as error:
            self._count("denied" if error.status == _FORBIDDEN else "failed", error)
            self._pause(_patience(error))
            return
        if wait:
            self._pause(wait)
            return
        self._plan.attempted(finding.subject)
        try:
            outcome = await _in_time(_create(self._api, finding, self._holder))
        except ApiError as error:
            self._refused(finding, error)
            return
        self._plan.settled(finding)
        self._counts[outcome] += 1

    def _refused(self, finding: Finding, error: ApiError) -> None:
        """Record a failed write: a 403 concerns the namespace (RoleBinding, termination), other final refusals this
        Event alone; after a transient failure all Events wait.
        """
        if error.status == _FORBIDDEN:
            self._count("denied", error)
            self._plan.denied(finding.subject.namespace)
            return
        self._count("failed", error)
        if _is_final(error):
            self._plan.settled(finding)
        else:
            self._pause(_patience(error))

    def _pause(self, seconds: float) -> None:
        self._paused_until = _now() + seconds

    def _count(self, outcome: str, error: ApiError) -> None:
        """Count an outcome, and log the error once per status: the findings themselves are logged elsewhere."""
        self._counts[outcome] += 1
        if error.status not in self._said:
            self._said.add(error.status)
            log.warning("plugin/topology: no Event on a Service could be written: %s", error)


async def _create(api: KubeApi, finding: Finding, instance: str) -> str:
    """Create the Event. Returns the outcome for `counts`: written, present or gone. Raises ApiError.

    The uid comes from a list of one object, not from a `get`: the ClusterRole has `list` on these kinds anyway.
    """
    namespace, kind = finding.subject.namespace, _kind_of(finding)
    selector = {"fieldSelector": f"metadata.name={finding.subject.name}"}
    uid = decode_uid(await read_body(api, f"{kind.path}/namespaces/{namespace}/{kind.plural}", selector))
    if not uid:
        return "gone"
    try:
        body = event_body(finding, uid, instance, time.time())
        await api.send("POST", f"/api/v1/namespaces/{namespace}/events", body)
    except ApiError as error:
        if error.status != _CONFLICT:
            raise
        return "present"
    return "written"


async def _in_time(work: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(LIMIT):
            return await work
    except TimeoutError:
        raise ApiError(0, f"not within {LIMIT:g} s") from None


def _is_final(error: ApiError) -> bool:
    return 400 <= error.status < 500 and error.status not in _PASSING


def _patience(error: ApiError) -> float:
    """Seconds that all Events wait after a failed connect or Lease, or a transient failure of one Event."""
    return DENIED if _is_final(error) else max(TROUBLED, error.retry_after or 0.0)


def _now() -> float:
    return asyncio.get_running_loop().time()


class _Kind(NamedTuple):
    """A kind of objects that Events are about."""

    name: str
    version: str
    path: str
    plural: str


_SERVICE: Final = _Kind("Service", "v1", "/api/v1", "services")
_IMPORT_VERSION: Final = "multicluster.x-k8s.io/v1alpha1"
_IMPORT: Final = _Kind("ServiceImport", _IMPORT_VERSION, f"/apis/{_IMPORT_VERSION}", "serviceimports")


def _kind_of(finding: Finding) -> _Kind:
    return _SERVICE if finding.imported is None else _IMPORT


REASONS: Final = {
    "annotation": "TopologyAnnotationIgnored",
    "governing": "TopologyPolicyHidesPeers",
    "import": "TopologyAnnotationIgnored",
    "ineffective": "TopologyKeyIneffective",
    "invalid": "TopologyPolicyInvalid",
    "misplaced": "TopologyPolicyMisplaced",
    "left_out": "ObjectsLeftOut",
    "no_slice": "EndpointSliceMissing",
    "other_zone": "EndpointZoneContradicted",
    "unknown_node": "EndpointNodeUnknown",
}
"""The reason of an Event by the kind of finding; other kinds cause no Event."""

COMPONENT: Final = "topodns"


MAX_MESSAGE: Final = 1024  # characters, by API convention


def event_body(finding: Finding, uid: str, instance: str, now: float) -> bytes:
    """An Event on the object with this uid; `now` in seconds since the epoch, `instance` names the replica.

    Its name has a hash of its content, so that a duplicate from any replica is rejected (409) while the first exists.
    The uid is needed because kubectl selects the Events of an object by it.
    """
    reason, (namespace, name), of = REASONS[finding.kind], finding.subject, _kind_of(finding)
    digest = sha256("\0".join((uid, reason, finding.text)).encode()).hexdigest()
    time = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H:%M:%SZ}"
    content = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": f"{name}.{digest[:16]}", "namespace": namespace},
        "involvedObject": {
            "kind": of.name,
            "apiVersion": of.version,
            "namespace": namespace,
            "name": name,
            "uid": uid,
        },
        "type": "Warning",
        "reason": reason,
        "message": finding.text if len(finding.text) <= MAX_MESSAGE else f"{finding.text[: MAX_MESSAGE - 1]}…",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": instance,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
    return json.dumps(content).encode()


def decode_uid(body: bytes) -> str:
    """The uid of the first object of a list of objects in JSON, "" for an empty list. Raises ApiError."""
    items = decoded_object(body).get("items") or []
    try:
        return str(items[0]["metadata"]["uid"]) if items else ""
    except (KeyError, TypeError):
        raise ApiError(0, "the list of the object cannot be read") from None
