"""The `autopath` directive: whose search list is gone through for clients that would do it themselves."""

from dataclasses import dataclass

from topodns.dns.names import Name


@dataclass(frozen=True, slots=True)
class Autopath:
    origins: tuple[Name, ...]  # names outside are left alone
    search: tuple[Name, ...] = ()  # the file's domains; with `kubernetes` those of this host, tried after the cluster's
    kubernetes: bool = False  # `@kubernetes`: the list is the one that the kubelet writes into a Pod
