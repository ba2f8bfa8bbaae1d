"""The clients for which an answer to a node cache is, as an EDNS option of the reply: CLIENT_POD.

Apart from `query.client_claim`, so that a node cache need not import the objects of a cluster.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from topodns.cluster.api_names import is_subdomain
from topodns.dns.message import Option

_MAX_NAMESPACE: Final = 63  # octets (RFC 1123 label)


class ClientScope(IntEnum):
    """The clients for which an answer to a node cache is: the first octet of the option CLIENT_POD of the reply."""

    NODE = 0  # all of the Node
    NAMESPACE = 1  # those whose Pods are in the namespace, whose name follows
    CLIENT = 2  # the one that the query names


def client_scope(scope: ClientScope, namespace: str = "") -> tuple[int, bytes]:
    """The option CLIENT_POD of a reply. `namespace`: for the scope NAMESPACE."""
    return Option.CLIENT_POD, bytes((scope,)) + namespace.encode()


def read_client_scope(found: Sequence[bytes]) -> tuple[ClientScope | None, bytes]:
    """(The scope, the namespace) of the data of a reply's options CLIENT_POD; None if they are not as `client_scope`
    writes one.
    """
    data = found[0] if len(found) == 1 else b""
    if data in (bytes((ClientScope.NODE,)), bytes((ClientScope.CLIENT,))):
        return ClientScope(data[0]), b""
    namespace = data[1:].decode("latin-1")
    is_name = len(namespace) <= _MAX_NAMESPACE and is_subdomain(namespace) and "." not in namespace
    if data[:1] == bytes((ClientScope.NAMESPACE,)) and is_name:
        return ClientScope.NAMESPACE, data[1:]
    return None, b""
