"""The faults that an API server or the way to it can have, and which of them a request meets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

from tests.support.fake_api.resources import Target
from tests.support.fake_api.statuses import UNAUTHORIZED, Refusal, forbidden

ANY: Final = "*"


@dataclass(slots=True)
class Faults:
    """The faults of now; by default none."""

    delay: float = 0.0  # seconds before each response begins
    hole: bool = False  # requests are read and never answered
    token: str = ""  # the only bearer token that is accepted; "" accepts all, and none
    denied: set[tuple[str, str]] = field(default_factory=set)  # (resource, verb), each may be ANY
    refusals: dict[tuple[str, str], Refusal] = field(default_factory=dict)  # by (resource, verb), each may be ANY
    versions: dict[str, Sequence[str]] = field(default_factory=dict)  # that an API group is served in; () is no group
    watch_list: str = "serve"  # or `refuse` (422) or `ignore`, as an older server
    bookmarks: bool = True
    gone_as_status: bool = False  # 410 instead of 200 and an ERROR event
    tear_lists: int = 0  # of the next lists only the first half is sent before the connection is cut

    def met_by(self, target: Target, verb: str, headers: Mapping[str, str]) -> Refusal | None:
        """How this request is refused, if it is."""
        if self.token and headers.get("authorization") != f"Bearer {self.token}":
            return UNAUTHORIZED
        name = target.resource.name
        for key in ((name, verb), (name, ANY), (ANY, verb), (ANY, ANY)):
            if key in self.denied:
                return forbidden(target, verb)
            if key in self.refusals:
                return self.refusals[key]
        return None

    def heal(self) -> None:
        """Nothing is wrong any more."""
        for each in fields(self):
            setattr(self, each.name, getattr(_NONE, each.name))
        self.denied, self.refusals, self.versions = set(), {}, {}


_NONE: Final = Faults()
