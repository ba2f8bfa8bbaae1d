"""The kinds of API objects that reflectors keep in sync: paths, selectors and RBAC rule."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from topodns.cluster.model import Kind


@dataclass(frozen=True, slots=True)
class Resource:
    """One watched kind, by its names in RBAC and in URLs.

    `paths` are tried in order: after a 404 the next one. An `optional` resource may be refused (403, or 404 on all
    paths); features that need it are then off. A `custom` resource may be not installed: after a 404 on all paths it
    counts as empty. Core resources always exist, so a 404 for one of them does not come from an API server.
    """

    kind: Kind
    name: str  # plural, with its group: `endpointslices.discovery.k8s.io`
    paths: tuple[str, ...]
    selectors: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False
    custom: bool = False

    @property
    def plural(self) -> str:
        return self.name.partition(".")[0]

    @property
    def group(self) -> str:
        """The API group; "" is the core one."""
        return self.name.partition(".")[2]

    @property
    def rule(self) -> str:
        """The ClusterRole rule that it needs, in YAML flow style."""
        return f'apiGroups: ["{self.group}"], resources: ["{self.plural}"], verbs: ["list", "watch"]'


Verb = Literal["list", "watch"]
