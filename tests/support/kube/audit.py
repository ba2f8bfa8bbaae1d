"""What service accounts of kube-system have asked the API server for, by its own audit log."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tests.kubelab.control_plane import AUDIT_LOG
from tests.kubelab.lab import Lab


@dataclass(frozen=True, slots=True)
class Asked:
    """One sort of request: the account's name, the verb of RBAC, what it is about, and the status of the response."""

    account: str
    verb: str
    group: str
    resource: str  # "pods", "deployments/scale"; "" for a path that is no resource
    status: int


def asked(lab: Lab, *accounts: str) -> set[Asked]:
    """By these accounts, since the lab is up; the lab's option `audit` is on."""
    return {each for each in _all(lab) if each.account in accounts}


def _all(lab: Lab) -> Iterator[Asked]:
    with open(lab.control.dir / AUDIT_LOG, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            about = event.get("objectRef", {})
            parts = (about.get("resource", ""), about.get("subresource", ""))
            yield Asked(
                account=event["user"]["username"].rpartition(":")[2],
                verb=event["verb"],
                group=about.get("apiGroup", ""),
                resource="/".join(part for part in parts if part),
                status=event.get("responseStatus", {}).get("code", 0),
            )
