"""Names in the Kubernetes API (util/validation): the syntax of names of Nodes and namespaces, and of keys and values of
labels.
"""

import re
from typing import Final

MAX_SUBDOMAIN: Final = 253  # characters

_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_DNS_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def is_subdomain(text: str) -> bool:
    """Whether this is a DNS-1123 subdomain, such as the name of a Node: labels of `a-z0-9-` with dots between them.

    At most 253 characters. A single label may have more than the 63 that DNS allows, as in the API.
    """
    return len(text) <= MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(text) is not None


def is_dns_label(text: str) -> bool:
    """Whether this is a DNS-1123 label, such as the name of a namespace: 1 to 63 of `a-z0-9-`, no `-` at either end."""
    return _DNS_LABEL.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Whether this is a qualified name, which is an optional DNS-1123 subdomain and "/", then 1 to 63 of alphanumerics
    and `-_.`, the first and the last one alphanumeric.
    """
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_subdomain(prefix)) and _LABEL_NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Whether this is a label's value: "", or the syntax of a label key without a prefix."""
    return not text or _LABEL_NAME.fullmatch(text) is not None
