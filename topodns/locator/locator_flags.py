"""The flags of `topodns locator`."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from topodns.cluster.api_names import is_label_key
from topodns.cluster.model import ObjectKey
from topodns.corefile.arguments import MAX_PORT, Address
from topodns.corefile.errors import shown
from topodns.kube.client.credentials import OURS
from topodns.kube.lease import LEASE_NAMESPACE
from topodns.locator.objects import KINDS, NODE_LOCATORS, LocatorKind
from topodns.locator.projection import LABELS

LEASE_NAME: Final = "topodns-locator"
COALESCE: Final = 0.5  # seconds
MAX_COALESCE: Final = 60.0  # seconds
MAX_LABEL_KEYS: Final = 32


@dataclass(frozen=True, slots=True)
class LocatorFlags:
    """The values of the command line."""

    kind: LocatorKind
    kubeconfig: str  # file; "" as `kubeconfig.connect`
    context: str
    label_keys: tuple[str, ...]
    window: float  # seconds
    lease: ObjectKey
    metrics: Address | None


def parse_locator_flags(arguments: Sequence[str]) -> LocatorFlags:
    """The flags. Raises SystemExit with status 2 for wrong usage, and with 0 after --help."""
    parser = argparse.ArgumentParser(
        prog="topodns locator",
        description="Write where Pods are as NodeLocators or PodLocators, for servers that watch no Pods.",
        epilog="Exit status: 0 stopped by a signal, 1 failure, 2 wrong usage.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--kind",
        choices=list(KINDS),
        default=NODE_LOCATORS.word,
        metavar="KIND",
        help="what to write: nodelocator, one per Node, or podlocator, one per Pod (nodelocator)",
    )
    parser.add_argument(
        "--kubeconfig", default="", metavar="FILE", help="outside of a Pod ($KUBECONFIG, else ~/.kube/config)"
    )
    parser.add_argument("--context", default="", metavar="NAME", help="of the kubeconfig (its current one)")
    parser.add_argument(
        "--label-keys",
        type=_label_keys,
        default="",
        metavar="K,...",
        help="labels of Nodes to copy beside the usual ones and those that keys name, except keys of `default`",
    )
    parser.add_argument(
        "--coalesce", type=_seconds, default=COALESCE, metavar="SECONDS",
        help=f"write a locator at most once in this time, 0 to {MAX_COALESCE:g} ({COALESCE:g})",
    )  # fmt: skip
    parser.add_argument(
        "--lease",
        type=_lease,
        default=None,
        metavar="NAMESPACE/NAME",
        help=f"of the leader (this namespace/{LEASE_NAME})",
    )
    parser.add_argument(
        "--metrics", type=_address, default=None, metavar="HOST:PORT", help="serve /metrics and /healthz here (nowhere)"
    )
    given = parser.parse_args(arguments)
    lease = given.lease or ObjectKey(OURS.namespace or LEASE_NAMESPACE, LEASE_NAME)
    label_keys = tuple(dict.fromkeys((*LABELS, *given.label_keys)))
    return LocatorFlags(
        KINDS[given.kind], given.kubeconfig, given.context, label_keys, given.coalesce, lease, given.metrics
    )


def _label_keys(text: str) -> tuple[str, ...]:
    keys = tuple(filter(None, (key.strip() for key in text.split(","))))
    for key in keys:
        if not is_label_key(key):
            raise argparse.ArgumentTypeError(f"{shown(key)} is no label key, expected one such as example.com/rack")
    if len(keys) > MAX_LABEL_KEYS:
        raise argparse.ArgumentTypeError(f"{len(keys)} keys, expected at most {MAX_LABEL_KEYS}")
    return keys


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MAX_COALESCE:
        raise argparse.ArgumentTypeError(f"{shown(text)}, expected seconds from 0 to {MAX_COALESCE:g}")
    return seconds


def _lease(text: str) -> ObjectKey:
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name or not text.isascii() or not text.isprintable():
        raise argparse.ArgumentTypeError(f"{shown(text)}, expected NAMESPACE/NAME such as kube-system/{LEASE_NAME}")
    return ObjectKey(namespace, name)


def _address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"{shown(text)}, expected HOST:PORT or :PORT")
    return Address(host.strip("[]"), int(port))
