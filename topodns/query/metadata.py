"""Metadata of a query, as in CoreDNS: labels such as `kubernetes/client-namespace`, each with a text as its value.

A plugin that knows values provides a `MetadataSource` to its server block. The directive `metadata` makes a `Metadata`
of all of them, and `view`, `log` and `rewrite` get a reader of each label from it. A value is computed when it is read.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Final, NamedTuple

from topodns.dns.message import Query
from topodns.dns.name import Name, is_below_any
from topodns.query.plugin import Client, Scope

CLIENT: Final = "kubernetes/client-"
"""The beginning of the labels whose values are those of the client's Pod; the others depend on the query alone."""

CLIENT_NAMESPACE: Final = f"{CLIENT}namespace"
CLIENT_POD_NAME: Final = f"{CLIENT}pod-name"
CLIENT_LABEL: Final = f"{CLIENT}label/"
"""The beginning of `kubernetes/client-label/KEY`: the value of this label of the Pod."""

VIEW_NAME: Final = "view/name"
KUBERNETES: Final = "kubernetes/"
PARSE_ERROR: Final = "parse-error"
OF_NAME: Final = frozenset(
    {"cluster", "endpoint", "kind", "namespace", "port-name", "protocol", "service", "zone", PARSE_ERROR}
)
"""The labels `kubernetes/...` whose values are parts of the name queried."""

ReadLabel = Callable[[Query, Client], str | None]
"""The value of one label for a query as the client sent it; None: there is none."""

ReaderOf = Callable[[str], ReadLabel]
"""The reader of a label."""


class MetadataSource(NamedTuple):
    """The labels of one plugin. `find`: the reader of a label, None for one that the plugin does not have."""

    find: Callable[[str], ReadLabel | None]


class Metadata:
    """The labels of one server block, for the names at and below `origins`."""

    def __init__(self, origins: tuple[Name, ...], sources: Sequence[MetadataSource]) -> None:
        self._origins = origins
        self._sources = sources

    def reader(self, label: str) -> ReadLabel:
        """The reader of this label; it gives None for a label that no plugin has."""
        found = next((read for source in self._sources if (read := source.find(label)) is not None), None)
        if found is None:
            return no_value
        read, origins = found, self._origins
        return lambda query, client: read(query, client) if is_below_any(query.qname, origins) else None


def no_value(query: Query, client: Client) -> None:
    """The reader of a label in a server block without `metadata`, or that no plugin has."""


def without_metadata(label: str) -> ReadLabel:
    """The `ReaderOf` of a server block without `metadata`."""
    return no_value


def is_label(text: str) -> bool:
    """Whether the text is a label in CoreDNS's sense: it has a slash, with something before and after it."""
    return 0 < text.find("/") < len(text) - 1


def why_without_value(label: str, directives: Container[str]) -> str:
    """Why this label has no value in a server block with these directives; "" where it may have one."""
    plugin = label.partition("/")[0]
    is_of_client = label in (CLIENT_NAMESPACE, CLIENT_POD_NAME) or label.startswith(CLIENT_LABEL)
    if "metadata" not in directives:
        return "the block has no 'metadata'"
    if label != VIEW_NAME and not is_of_client and label.removeprefix(KUBERNETES) not in OF_NAME:
        return "there is no such label"
    return "" if plugin in directives else f"the block has no {plugin!r}"


def client_labels(labels: Iterable[str]) -> frozenset[str]:
    """Those of the labels whose values are those of the client's Pod."""
    return frozenset(label for label in labels if label.startswith(CLIENT))


def scope_of(labels: Iterable[str]) -> Scope:
    """The clients for which an answer is the same that depends on these labels."""
    found = client_labels(labels)
    if not found:
        return Scope.EVERYONE
    return Scope.NAMESPACE if found == {CLIENT_NAMESPACE} else Scope.POD
