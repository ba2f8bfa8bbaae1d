"""The JSON documents of explain, who, top and audit: their members, for the functions that make them.

Programs find the same in docs/reference/inspect.schema.json, which is made of these types. While `version` is 1,
members are only added, and existing ones keep name and meaning. A member whose value is null is unknown, or there is
none.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NotRequired, TypedDict

VERSION: Final = 1


class ClientObject(TypedDict):
    """The client of an explanation. `address` is null if a Node was given; `method`: how its `node` was found."""

    address: str | None
    node: str | None
    method: str


class QuestionObject(TypedDict):
    """The name and the type of the query."""

    name: str
    type: str


class PolicyObject(TypedDict):
    """The topology keys of the Service, and their source as in the option `keys`; `problem`: why they are invalid.

    `guards`: the values of the annotations `min-endpoints`, `max-load`, `max-endpoints` and `apply-to` that count.
    """

    source: str | None
    keys: Sequence[str]
    problem: str | None
    guards: Mapping[str, str]


class TriedKeyObject(TypedDict):
    """A key that was compared: the value at the client's Node, or in `because` why it has none, and how many endpoints
    match; in `guard` why it does not win although some do. The key `*` has no value.
    """

    key: str
    value: str | None
    because: str | None
    matches: int
    guard: str | None


class BoundObject(TypedDict):
    """The answer has `answered` endpoints, at most `most` by `max-endpoints`, `of` those that the other rules leave."""

    most: int
    answered: int
    of: int


class EndpointObject(TypedDict):
    """A ready endpoint of a headless Service: whether the client gets it, and why.

    `labels`: for each key that was compared the value at the endpoint's Node, null for none. `because`: the key that
    chose it, or its values. `fault`: its Node is unknown, or lacks a label. Both are null if nothing was compared.
    """

    address: str
    node: str | None
    answered: bool
    labels: Mapping[str, str | None]
    because: str | None
    fault: str | None


class ExplainDocument(TypedDict):
    """`topodns explain --json` and /explain: the decisions behind one answer.

    `tried`: the keys in their order; `winner`: the one that chose the endpoints. `reason`: of the answer, "" for none.
    `hint`: advice for the operator. `findings`: about the keys and annotations of the Service, as of an audit.
    `answer`: the records. `endpoints`: of the address families of the query, in the order of the EndpointSlices;
    `bound`: how many of them `max-endpoints` leaves, null if all.
    """

    version: Literal[1]
    client: ClientObject
    question: QuestionObject
    policy: PolicyObject
    tried: Sequence[TriedKeyObject]
    winner: str | None
    reason: str
    hint: str | None
    findings: Sequence[str]
    rcode: str
    bound: BoundObject | None
    answer: Sequence[str]
    endpoints: Sequence[EndpointObject]


class MethodObject(TypedDict):
    """The result of one method that locates clients, and why. `used`: the option `locate` has it."""

    method: str
    used: bool
    node: str | None
    because: str


class LocationObject(TypedDict):
    """Where one cluster, that of a `kubernetes` directive, locates the address.

    `labels`: those of the Node that a Service's keys name; `lacking`: up to 20 such keys for which it has none, both by
    the first 2,000 Services with keys. `contradictions`: at most 21 sentences. `hint`: advice for the operator.
    """

    origins: Sequence[str]
    view: str | None
    node: str | None
    method: str
    because: str
    zone: str | None
    labels: Mapping[str, str]
    lacking: Sequence[str]
    methods: Sequence[MethodObject]
    contradictions: Sequence[str]
    hint: str | None


class WhoDocument(TypedDict):
    """`topodns who --json` and /who: the location of an address in each cluster."""

    version: Literal[1]
    address: str
    clusters: Sequence[LocationObject]


class PodWhoDocument(TypedDict):
    """`kubectl topodns who POD --json`: the Pod (NAMESPACE/NAME), its Node by the API server, and its addresses."""

    version: Literal[1]
    pod: str
    node: str | None
    addresses: Sequence[WhoDocument]


Aspect = Literal["client", "pod", "namespace", "node", "name", "nxdomain"]
"""What the rows of `top` are about; `nxdomain`: names that do not exist."""


class TopRowObject(TypedDict):
    """One client, Pod (NAMESPACE/NAME), namespace, node or name, and the estimate of its queries.

    Where the Pod or its namespace is not known, `value` is `node NAME` or the address.
    """

    value: str
    queries: int


class TopDocument(TypedDict):
    """`topodns top --json` and /top: the queries of the last `minutes`, the most first.

    `queries`: an estimate by the `sampled` ones; `others`: those that are in none of the rows.
    """

    version: Literal[1]
    by: Aspect
    minutes: int
    queries: int
    sampled: int
    rows: Sequence[TopRowObject]
    others: int


class FindingObject(TypedDict):
    """A finding: of a Service, or with null of the whole cluster. `kind` is one of docs/operate/audit.md."""

    service: str | None
    severity: Literal["error", "warning", "info"]
    kind: str
    text: str
    nodes: NotRequired[int]
    node_names: NotRequired[Sequence[str]]
    zones: NotRequired[Sequence[str]]
    keys: NotRequired[Sequence[str]]
    endpoints: NotRequired[Sequence[str]]
    family: NotRequired[int]
    ratio: NotRequired[float]


class ZoneObject(TypedDict):
    """The Nodes and ready endpoints of a topology zone, "" for those without one; `covered`: Nodes whose clients get an
    endpoint.
    """

    zone: str
    nodes: int
    covered: int
    endpoints: int


class NumbersObject(TypedDict):
    """The keys of a Service and how far they reach; `skew`: the highest load of an endpoint over the mean. `guards` as
    of a PolicyObject; with `apply-to` the figures are those of the name `_near.SERVICE`.
    """

    keys: Sequence[str]
    source: str | None
    guards: Mapping[str, str]
    endpoints: int
    nodes: int
    covered: int
    zones: Sequence[ZoneObject]
    skew: float


class AuditedServiceObject(NumbersObject):
    """A Service with keys or `max-endpoints`, as NAMESPACE/NAME, and its findings, the worst first."""

    service: str
    findings: Sequence[FindingObject]


class ChangedServiceObject(TypedDict):
    """A Service that a what-if changes: its numbers, and the findings that are gone and new."""

    service: str
    before: NumbersObject
    after: NumbersObject
    gone: Sequence[FindingObject]
    new: Sequence[FindingObject]


class CountsObject(TypedDict):
    """How many findings there are of each severity."""

    error: int
    warning: int
    info: int


class WhatIfObject(TypedDict):
    """The cluster with the changes of a what-if."""

    changes: Sequence[str]
    counts: CountsObject
    services: Sequence[ChangedServiceObject]
    services_left_out: int


class AuditedClusterObject(TypedDict):
    """One cluster. `waiting`: why its state is not complete. `skipped`: the objects that cannot be read.

    `others`: findings about none of the `services`. The members `..._left_out` count what a list has no room for.
    """

    origins: Sequence[str]
    waiting: Sequence[str]
    skipped: Sequence[str]
    nodes: int
    counts: CountsObject
    others: Sequence[FindingObject]
    others_left_out: int
    services: Sequence[AuditedServiceObject]
    services_left_out: int
    what_if: WhatIfObject | None


class AuditDocument(TypedDict):
    """`topodns audit --json` and /audit: the coverage and the findings of every Service with topology keys."""

    version: Literal[1]
    clusters: Sequence[AuditedClusterObject]
