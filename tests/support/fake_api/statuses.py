"""The API server's words for a failure: objects of kind Status."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.fake_api.resources import Object, Target


@dataclass(frozen=True, slots=True)
class Refusal:
    """A response that is not 2xx. `retry_after` in seconds becomes the header."""

    code: int
    reason: str
    message: str
    retry_after: int | None = None
    causes: tuple[Mapping[str, str], ...] = ()

    def status(self) -> Object:
        details: dict[str, Any] = {}
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        if self.causes:
            details["causes"] = list(self.causes)
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            **({"details": details} if details else {}),
            "code": self.code,
        }


def forbidden(target: Target, verb: str) -> Refusal:
    resource, group = target.resource.name, target.resource.group
    where = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
    return Refusal(
        403,
        "Forbidden",
        f'{resource} is forbidden: User "system:serviceaccount:kube-system:topodns" cannot {verb} resource '
        f'"{resource}" in API group "{group}" {where}',
    )


def too_old(asked: int, oldest: int) -> Refusal:
    return Refusal(410, "Expired", f"too old resource version: {asked} ({oldest})")


def too_new(asked: int, current: int) -> Refusal:
    """To a request NotOlderThan what this server has not seen yet."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return Refusal(504, "Timeout", message, retry_after=1, causes=(cause,))


def invalid_options(problem: str) -> Refusal:
    return Refusal(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {problem}')


def too_many_requests(retry_after: int) -> Refusal:
    message = "the server has received too many requests and has asked us to try again later"
    return Refusal(429, "TooManyRequests", message, retry_after)


UNAUTHORIZED = Refusal(401, "Unauthorized", "Unauthorized")
NO_SUCH_PATH = Refusal(404, "NotFound", "the server could not find the requested resource")
INTERNAL_ERROR = Refusal(500, "InternalError", "Internal error occurred: etcdserver: leader changed")
CONTINUE_EXPIRED = Refusal(
    410,
    "Expired",
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter.",
)
