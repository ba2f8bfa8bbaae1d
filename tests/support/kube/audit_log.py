"""The API requests of service accounts of kube-system, by the audit log, and their permissions."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.kubelab.control_plane import AUDIT_LOG
from tests.kubelab.lab import Lab
from tests.support.kube.objects import Object


class Right(NamedTuple):
    """A right that a rule of RBAC grants: a verb on a resource of an API group, "" for the core."""

    group: str
    resource: str  # "pods", "deployments/scale"
    verb: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One sort of request: the account's name, the right that it takes, and the status of the response."""

    account: str
    right: Right  # without a resource where the path is none
    status: int


def asked(lab: Lab, *accounts: str) -> set[Asked]:
    """By these accounts, since the lab is up; the lab's option `audit` is on."""
    return {each for each in _all(lab) if each.account in accounts}


def _all(lab: Lab) -> Iterator[Asked]:
    with open(lab.control.dir / AUDIT_LOG, encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                break  # the API server is still writing it
            event = json.loads(line)
            about = event.get("objectRef", {})
            parts = (about.get("resource", ""), about.get("subresource", ""))
            right = Right(about.get("apiGroup", ""), "/".join(part for part in parts if part), event["verb"])
            account = event["user"]["username"].rpartition(":")[2]
            yield Asked(account, right, event.get("responseStatus", {}).get("code", 0))


def granted_rights(objects: Iterable[Object], account: str) -> set[Right]:
    """The rights that the roles among these objects give to the service account that they are bound to."""
    objects = list(objects)
    roles = {(each["kind"], each["metadata"]["name"]): each["rules"] for each in objects if "rules" in each}
    bindings = [each for each in objects if account in (subject["name"] for subject in each.get("subjects", ()))]
    return {
        Right(group, resource, verb)
        for binding in bindings
        for rule in roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
