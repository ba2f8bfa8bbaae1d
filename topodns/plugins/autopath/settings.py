"""The settings of an `autopath` directive: the origins and the search list that the server walks for clients."""

from dataclasses import dataclass

from topodns.dns.name import ROOT, Name, is_reverse


@dataclass(frozen=True, slots=True)
class Autopath:
    origins: tuple[Name, ...]  # names outside are not searched for; where no cluster is watched, its domains
    search: tuple[Name, ...] = ()  # the file's domains; with `kubernetes` this host's, tried after the cluster's
    kubernetes: bool = False  # `@kubernetes`: the list that the kubelet writes into a Pod

    @property
    def cluster_domains(self) -> tuple[Name, ...]:
        """The origins that may be the domain of a cluster: neither the root nor reverse zones."""
        return tuple(origin for origin in self.origins if origin != ROOT and not is_reverse(origin))
