"""The log lines of reflectors; a program may have reports of its own."""

import logging
from typing import Final

from topodns.kube.client.contract import ApiError
from topodns.kube.informer.resources import Resource

log = logging.getLogger(__name__)

_FORBIDDEN: Final = 403


class Reports:
    """Logs the lines of the reflectors of one API server, after a prefix."""

    def __init__(self, prefix: str = "plugin/kubernetes") -> None:
        self._prefix = prefix

    def say(self, text: str, level: int = logging.WARNING) -> None:
        """Log a line."""
        log.log(level, "%s: %s", self._prefix, text)

    async def failed(self, resource: Resource, verb: str, error: ApiError, first: bool) -> None:
        """Report a failed list or watch. `first`: the request before it succeeded, or failed in another way."""
        if first:
            log.warning("plugin/kubernetes: cannot %s %s: %s", verb, resource.name, error)
            if error.status == _FORBIDDEN:
                log.warning("plugin/kubernetes: the ClusterRole needs %s", resource.rule)

    def recovered(self, resource: Resource) -> None:
        """Report the first success after a failure."""
        self.say(f"{resource.name}: the API server answers again", logging.INFO)

    def implausible(self, resource: Resource, problem: str) -> None:
        """Report a complete list that another one must confirm: a clause of `list_check`."""
        self.say(f"list of {resource.name}: {problem}; asking again")

    def rolled_back(self, resource: Resource, version: str, seen: str) -> None:
        """Report that the API server is at an older resourceVersion than was seen before."""
        self.say(f"the API server's {resource.name}: {lag(version, seen)}")


def lag(version: str, seen: str) -> str:
    """A clause of a log line, on a resourceVersion that is older than another one."""
    return f"its resourceVersion {version} is older than {seen}, which was seen before"
