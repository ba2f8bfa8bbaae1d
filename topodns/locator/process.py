"""The process of `topodns locator`: connects, takes part in the election, leads, stops."""

import asyncio
import logging
import socket
import sys
import time
import uuid
from random import Random

from topodns import __version__
from topodns.app.event_loop import run_to_end
from topodns.app.metrics import metrics_route
from topodns.app.signals import handle_signals
from topodns.app.standard_streams import dropped_reading
from topodns.kube.client.contract import ApiError
from topodns.kube.client.kubeconfig import connect
from topodns.kube.client.official_client import OfficialClient
from topodns.locator.controller import LocatorController
from topodns.locator.leader_election import Fence, FencedLock, LeaseApi, campaign
from topodns.locator.locator_flags import LocatorFlags
from topodns.locator.metrics import LocatorCounts
from topodns.locator.refusals import Refusals
from topodns.logs import start_logging
from topodns.net.http_server.messages import HttpReply, HttpRequest
from topodns.net.http_server.server import AdminServer
from topodns.net.loop_timers import boot_clock
from topodns.net.sockets import ListenError, open_tcp

log = logging.getLogger(__name__)


def run(flags: LocatorFlags) -> int:
    """Run until a signal. Returns the status: 0 stopped, 1 after a bug. Raises ApiError for unusable credentials."""
    start_logging(time.monotonic)
    try:
        return run_to_end(_serve(flags))
    except ListenError as problem:
        print(problem, file=sys.stderr)
        return 1


async def _serve(flags: LocatorFlags) -> int:
    stop = asyncio.Event()
    handle_signals(asyncio.get_running_loop(), stop, asyncio.Event(), asyncio.Event())
    async with connect(flags.kubeconfig, flags.context) as client:
        counts = LocatorCounts()
        admin = _listen(flags, counts)
        work = asyncio.create_task(_campaign_forever(client, flags, counts), name="locator")
        stopped = asyncio.create_task(stop.wait(), name="stop")
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        failed = work.done()
        work.cancel()
        stopped.cancel()
        (outcome, _) = await asyncio.gather(work, stopped, return_exceptions=True)
        admin.close()
    if failed and isinstance(outcome, BaseException):
        log.error("bug: the controller ended", exc_info=outcome)
    return 1 if failed else 0


async def _campaign_forever(client: OfficialClient, flags: LocatorFlags, counts: LocatorCounts) -> None:
    """Take part in the election until cancelled; each time that it is won, lead until the Lease is lost."""
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    lease, rng = f"Lease {flags.lease.namespace}/{flags.lease.name}", Random()
    refusals = Refusals(flags.kind, counts, client)
    fence = Fence(boot_clock)
    counts.is_leader = lambda: fence.is_open

    def report(problem: ApiError | None) -> None:
        if problem is None:
            refusals.over(lease)
        else:
            refusals.report_plain(lease, problem)

    async def lead() -> None:
        counts.terms += 1
        log.info("locator: leads, by the %s: writes %s", lease, flags.kind.plural)
        try:
            await LocatorController(
                client, flags.kind, flags.label_keys, flags.window, fence, counts, refusals, rng
            ).run()
        finally:
            log.info("locator: does not lead any more")

    log.info("locator: topodns %s takes part in the election by the %s as %s", __version__, lease, identity)
    lock = FencedLock(LeaseApi(client, *flags.lease), identity, fence, boot_clock, time.time, report)
    while True:
        await campaign(lock, fence, lead)


def _listen(flags: LocatorFlags, counts: LocatorCounts) -> AdminServer:
    """Serve /metrics and /healthz at the address of the flags, if there is one. Raises ListenError."""
    admin = AdminServer()
    if flags.metrics is not None:
        at = (flags.metrics.host, flags.metrics.port)
        metrics = metrics_route(lambda: [dropped_reading(), *counts.readings(flags.kind.word)])
        admin.listen(at, open_tcp(*at), {"/metrics": metrics, "/healthz": _healthy})
    return admin


def _healthy(_: HttpRequest) -> HttpReply:
    return HttpReply(200, b"OK")
