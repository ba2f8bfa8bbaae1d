"""The used fields of each kind of Kubernetes API object, as msgspec structs; the only importer of msgspec.

All other fields are skipped without being built. Every field may be null or missing, as in Go's decoder, except an
object's name. `objects` and `slices` interpret the fields.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar, get_args, get_type_hints

import msgspec

from topodns.cluster.decode.unreadable_elements import LeftOutElements, without_unreadable

# The errors of StructReader: for what is no UTF-8 and for too deep nesting msgspec raises Python's own.
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)


class ApiStruct(msgspec.Struct, gc=False, rename="camel"):
    """Base of all structs. They live during one decoding and never in a cycle: neither frozen nor tracked by gc."""


class ApiMetadata(ApiStruct):
    name: str
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, Any] | None = None  # texts, but manifests may have anything else
    generation: int | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class ApiObject(ApiStruct):
    metadata: ApiMetadata
    api_version: str | None = None


class ApiOwnedMetadata(ApiMetadata):
    uid: str | None = None
    owner_references: Any = None


class ApiOwned(ApiStruct):
    """The metadata of an object that owns others or has an owner, for a program that writes such objects."""

    metadata: ApiOwnedMetadata


class ApiWritten(ApiOwned):
    """An object that such a program wrote, with its spec as it is."""

    spec: Any = None


class ApiNamed(ApiStruct):
    name: str | None = None


class ApiNodeCondition(ApiStruct):
    type: str | None = None
    status: str | None = None


class ApiNodeAddress(ApiStruct):
    type: str | None = None
    address: str | None = None


class ApiNodeSpec(ApiStruct):
    pod_cidrs: list[str] | None = msgspec.field(name="podCIDRs", default=None)
    pod_cidr: str | None = msgspec.field(name="podCIDR", default=None)


class ApiNodeStatus(ApiStruct):
    addresses: list[ApiNodeAddress] | None = None
    conditions: list[ApiNodeCondition] | None = None


class ApiNode(ApiObject):
    spec: ApiNodeSpec | None = None
    status: ApiNodeStatus | None = None


class ApiPort(ApiStruct):
    """A port of a Service, a ServiceImport, a slice or an Endpoints subset, which have the same fields."""

    port: int | None = None
    name: str | None = None
    protocol: str | None = None


class ApiServiceSpec(ApiStruct):
    type: str | None = None
    external_name: str | None = None
    cluster_ip: str | None = msgspec.field(name="clusterIP", default=None)
    cluster_ips: list[str] | None = msgspec.field(name="clusterIPs", default=None)
    external_ips: list[str] | None = msgspec.field(name="externalIPs", default=None)
    ip_families: list[str] | None = None
    selector: dict[str, Any] | None = None
    ports: list[ApiPort] | None = None
    topology_keys: list[str] | None = None
    traffic_distribution: str | None = None
    internal_traffic_policy: str | None = None


class ApiIngress(ApiStruct):
    ip: str | None = None
    hostname: str | None = None


class ApiLoadBalancer(ApiStruct):
    ingress: list[ApiIngress] | None = None


class ApiServiceStatus(ApiStruct):
    load_balancer: ApiLoadBalancer | None = None


class ApiService(ApiObject):
    spec: ApiServiceSpec | None = None
    status: ApiServiceStatus | None = None


class ApiServiceImportSpec(ApiStruct):
    type: str | None = None
    ips: list[str] | None = None
    ports: list[ApiPort] | None = None


class ApiServiceImport(ApiObject):
    spec: ApiServiceImportSpec | None = None


class ApiClusterPropertySpec(ApiStruct):
    value: str | None = None


class ApiClusterProperty(ApiObject):
    spec: ApiClusterPropertySpec | None = None


class ApiConditions(ApiStruct):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ApiHints(ApiStruct):
    for_zones: list[ApiNamed] | None = None
    for_nodes: list[ApiNamed] | None = None


class ApiTarget(ApiStruct):
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None


class ApiEndpoint(ApiStruct):
    addresses: list[str] | None = None
    conditions: ApiConditions | None = None
    hostname: str | None = None
    node_name: str | None = None
    zone: str | None = None
    hints: ApiHints | None = None
    target_ref: ApiTarget | None = None
    deprecated_topology: dict[str, str] | None = None
    topology: dict[str, str] | None = None  # its name in v1beta1


class ApiEndpointSlice(ApiObject):
    address_type: str | None = None
    ports: list[ApiPort] | None = None
    endpoints: list[ApiEndpoint] | None = None


class ApiUnreadSlice(ApiObject):
    """An EndpointSlice whose ports and endpoints are not yet decoded."""

    address_type: str | None = None
    ports: list[msgspec.Raw] | None = None
    endpoints: list[msgspec.Raw] | None = None


class ApiEndpointAddress(ApiStruct):
    ip: str | None = None
    hostname: str | None = None
    node_name: str | None = None
    target_ref: ApiTarget | None = None


class ApiSubset(ApiStruct):
    addresses: list[ApiEndpointAddress] | None = None
    not_ready_addresses: list[ApiEndpointAddress] | None = None
    ports: list[ApiPort] | None = None


class ApiEndpoints(ApiObject):
    subsets: list[ApiSubset] | None = None


class ApiPodAddress(ApiStruct):
    ip: str | None = None


class ApiPodSpec(ApiStruct):
    node_name: str | None = None
    host_network: bool | None = None


class ApiPodStatus(ApiStruct):
    phase: str | None = None
    pod_ip: str | None = msgspec.field(name="podIP", default=None)
    pod_ips: list[ApiPodAddress] | None = msgspec.field(name="podIPs", default=None)
    start_time: str | None = None


class ApiPod(ApiObject):
    spec: ApiPodSpec | None = None
    status: ApiPodStatus | None = None


class ApiNodeLocatorSpec(ApiStruct):
    pod_ips: list[str] | None = msgspec.field(name="podIPs", default=None)
    addresses: list[str] | None = None
    labels: dict[str, str] | None = None


class ApiNodeLocator(ApiObject):
    spec: ApiNodeLocatorSpec | None = None


class ApiPodLocatorSpec(ApiStruct):
    addresses: list[str] | None = None
    node_name: str | None = None
    node_labels: dict[str, str] | None = None


class ApiPodLocator(ApiObject):
    spec: ApiPodLocatorSpec | None = None


class ApiStatefulSetSpec(ApiStruct):
    service_name: str | None = None


class ApiStatefulSet(ApiObject):
    spec: ApiStatefulSetSpec | None = None


class ApiWatchEvent(ApiStruct):
    """A line of a watch. Its object is decoded later, by type and kind, without a copy."""

    type: str
    object: msgspec.Raw


class ApiMark(ApiStruct):
    """The metadata of a bookmark or a list, which have no name."""

    resource_version: str | None = None
    continue_token: str | None = msgspec.field(name="continue", default=None)
    annotations: dict[str, str] | None = None


class ApiBookmark(ApiStruct):
    metadata: ApiMark | None = None


class ApiList(ApiStruct):
    """A page of a list, its objects not yet decoded."""

    kind: str | None = None
    metadata: ApiMark | None = None
    items: list[msgspec.Raw] | None = None


class ApiGroupVersion(ApiStruct):
    version: str | None = None


class ApiGroup(ApiStruct):
    """The discovery document of an API group."""

    versions: list[ApiGroupVersion] | None = None


class ApiStatusDetails(ApiStruct):
    retry_after_seconds: int | None = None


class ApiStatus(ApiStruct):
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: ApiStatusDetails | None = None


Json = bytes | msgspec.Raw
"""JSON text, or a part of one."""

Source = Json | Mapping[str, Any]
"""One API object: JSON as the API server sends it, or a parsed YAML or JSON document."""

T = TypeVar("T", bound=ApiStruct)


WIDE: Final = 256 << 10  # octets of JSON; 1,000 endpoints are about 300,000, an object with short lists is below 10,000
MOST_ELEMENTS: Final = 2001  # of a list of such an object that are read; no decoder uses more of any list


class StructReader(Generic[T]):
    """Decoder of one type of struct, built once per type because msgspec's decoder tables are costly to build.

    `read_json` decodes one object; it raises one of UNREADABLE.
    """

    read_json: Callable[[Json], T]

    def __init__(self, struct: type[T]) -> None:
        self.struct = struct
        self.read_json = msgspec.json.Decoder(struct).decode
        self._wide: _WideStruct | None = None  # made for the first wide object

    def _read_wide(self, source: Json) -> T:
        """As `read_json`, but of each list, except those in elements of lists, only the first MOST_ELEMENTS are read.

        The API has no limit on the ports of a Service: to build 60,000 takes 15 ms, and to skip them 5 ms.
        """
        if self._wide is None:
            self._wide = _WideStruct(self.struct)
        read: T = self._wide.decode(source)
        self._wide.narrow(read)
        return read

    def read(self, source: Source) -> T:
        """As `read_json`, also for a parsed YAML or JSON document.

        The parsers of these let half of a surrogate pair ("\\ud800") into a text, of which no octets can be made (RFC
        3629 section 3): where a field has one, writing it raises UnicodeEncodeError.
        """
        if isinstance(source, (bytes, msgspec.Raw)):
            return self.read_json(source) if len(source) < WIDE else self._read_wide(source)
        found = msgspec.convert(source, self.struct)
        msgspec.json.encode(found)
        return found

    def read_leaving_out(self, source: Source, left_out: LeftOutElements) -> T:
        """As `read`, but elements of lists that cannot be read are only left out; `left_out` gets them.

        Only an object with such an element is read in a second, slower way, which builds all of its values.
        """
        try:
            return self.read(source)
        except (msgspec.MsgspecError, UnicodeError) as error:
            plain = _plain(source)
            if not isinstance(plain, Mapping):
                raise error
        return self.read(without_unreadable(plain, self.struct, left_out))


def _plain(source: Source) -> Any:
    """The parsed document; octets that are no UTF-8 become halves of surrogate pairs. None if it cannot be parsed."""
    if not isinstance(source, (bytes, msgspec.Raw)):
        return source
    try:
        return json.loads(bytes(source).decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None


class _WideStruct:
    """A struct whose lists are decoded element by element: each is first skipped, as JSON, and few are then read."""

    def __init__(self, struct: type[ApiStruct]) -> None:
        self._lists: dict[str, Callable[[msgspec.Raw], Any]] = {}  # field -> decoder of an element
        self._parts: dict[str, _WideStruct] = {}  # field -> the struct in it
        fields: list[tuple[str, Any, Any]] = []
        for name, key in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
            kind = next((each for each in get_args(get_type_hints(struct)[name]) if each is not type(None)), None)
            if getattr(kind, "__origin__", None) is list:
                (element,) = get_args(kind)
                self._lists[name] = msgspec.json.Decoder(element).decode
                fields.append((name, list[msgspec.Raw] | None, msgspec.field(name=key, default=None)))
            elif isinstance(kind, type) and issubclass(kind, ApiStruct):
                part = self._parts[name] = _WideStruct(kind)
                fields.append((name, part.struct | None, msgspec.field(name=key, default=None)))
        # It has the name of the original for error messages.
        self.struct: Any = msgspec.defstruct(struct.__name__, fields, bases=(struct,), gc=False)
        self.decode: Callable[[Json], Any] = msgspec.json.Decoder(self.struct).decode

    def narrow(self, read: Any) -> None:
        """Put the first elements, decoded, in the place of each list of a decoded struct. Raises one of UNREADABLE."""
        for name, decode in self._lists.items():
            if raw := getattr(read, name):
                setattr(read, name, [decode(each) for each in raw[:MOST_ELEMENTS]])
        for name, part in self._parts.items():
            if (inner := getattr(read, name)) is not None:
                part.narrow(inner)


read_endpoint: Final[Callable[[bytes], ApiEndpoint]] = msgspec.json.Decoder(ApiEndpoint).decode
read_port: Final[Callable[[Json], ApiPort]] = msgspec.json.Decoder(ApiPort).decode


class ApiNames(ApiStruct):
    name: Any = None
    namespace: Any = None


class ApiNamesOnly(ApiStruct):
    metadata: ApiNames | None = None


class ApiVersionOnly(ApiStruct):
    api_version: Any = None


_NAMES: Final = StructReader(ApiNamesOnly)
_VERSION: Final = StructReader(ApiVersionOnly)


def read_identity(source: Source) -> tuple[str, str]:
    """(apiVersion, `namespace/name`) of an object that may be invalid; `name` alone if it has no namespace.

    `namespace/` if only that is readable; "" for one that is unreadable. No other field is decoded, so that an
    annotation with invalid UTF-8 does not hide the name.
    """
    return _read_api_version(source), _read_name(source)


def _read_api_version(source: Source) -> str:
    try:
        return _text(_VERSION.read(source).api_version)
    except UNREADABLE:
        return ""


def _read_name(source: Source) -> str:
    try:
        metadata = _NAMES.read(source).metadata or ApiNames()
    except UNREADABLE:
        return ""
    namespace, name = _text(metadata.namespace), _text(metadata.name)
    return f"{namespace}/{name}" if namespace else name


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


# Values of `cluster.model` as MessagePack (`cluster.packed_objects`).
pack: Final[Callable[[object], bytes]] = msgspec.msgpack.Encoder(enc_hook=dict).encode


def unpacker(kind: Any) -> Callable[[bytes], Any]:
    """A function that decodes octets of `pack` to values of this type."""
    return msgspec.msgpack.Decoder(kind).decode
