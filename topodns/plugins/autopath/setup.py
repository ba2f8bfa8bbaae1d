"""The parser, setup and metric of the `autopath` directive."""

from collections.abc import Collection, Iterator
from functools import partial
from typing import Final

from topodns.corefile.arguments import some_args
from topodns.corefile.errors import ConfigError, shown
from topodns.corefile.files import load_search_list
from topodns.corefile.parser import Directive
from topodns.corefile.zones import parse_origins
from topodns.dns.name import Name
from topodns.metrics.registry import Published, Reading
from topodns.plugins.autopath.handler import AutopathCounts, SearchPath
from topodns.plugins.autopath.search_list import ClusterSearch, DistantClusterSearch, FixedSearch, own_namespace
from topodns.plugins.autopath.settings import Autopath
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import Plugin, Reads, origins
from topodns.plugins.setup import BlockListener, BlockSetup, Install, MetricsSource
from topodns.query.plugin import ChainPart

_RESOLV_CONF: Final = "/etc/resolv.conf"
_KUBERNETES: Final = "@kubernetes"
_HOST_DOMAINS: Final = 29  # the kubelet limits a Pod's list to 32 domains, three of which are the cluster's


def parse_autopath(directive: Directive, context: Context, resolv_conf: str = _RESOLV_CONF) -> Autopath:
    """`autopath [ZONES...] FILE|@kubernetes`. `resolv_conf` is this host's, which need not exist."""
    *words, source = some_args(directive, f"a file like /etc/resolv.conf or {_KUBERNETES}")
    origins = parse_origins(directive, words) or context.origins
    if source == _KUBERNETES:
        return Autopath(origins, _host_search_list(resolv_conf), kubernetes=True)
    if source.startswith("@"):
        raise directive.error(f"'autopath' has {shown(source)}, expected a file or {_KUBERNETES}")
    path = context.readable_file(directive, source)
    search = load_search_list(path)
    if not search:  # as where systemd-resolved writes `search .`
        context.warn(
            f"plugin/autopath: {shown(source)} has no search domain, so the directive has no effect ({directive.place})"
        )
    return Autopath(origins, search)


def _host_search_list(path: str) -> tuple[Name, ...]:
    """The first domains of the host's list, at most _HOST_DOMAINS.

    Empty where the host's file is missing or malformed, as in CoreDNS: that is not an error of the Corefile.
    """
    try:
        return load_search_list(path, skip_bad=True)[:_HOST_DOMAINS]
    except ConfigError:
        return ()


def _check(directive: Directive, settings: Autopath, present: Collection[str]) -> None:
    """Raise ConfigError for `@kubernetes` without `kubernetes`, unless there is `forward` and a domain of a cluster."""
    if not settings.kubernetes or "kubernetes" in present:
        return
    if "forward" not in present:
        raise directive.error(
            "found 'autopath' in a server block without 'kubernetes' and 'forward', expected one of these"
        )
    if not settings.cluster_domains:
        raise directive.error(
            "'autopath' has no domain of a cluster, expected one, as in 'autopath cluster.local @kubernetes'"
        )


def _setup(settings: Autopath, block: BlockSetup) -> Install:
    if settings.kubernetes and block.cluster is not None:
        block.vary_by(partial(own_namespace, block.cluster.state))

    def install(listener: BlockListener) -> tuple[ChainPart, ...]:
        if not settings.kubernetes and not settings.search:
            return ()
        counts = block.process.shared.get(AutopathCounts, listener.server)
        return (ChainPart(around=_search_path(settings, block, listener, counts)),)

    return install


def _search_path(settings: Autopath, block: BlockSetup, listener: BlockListener, counts: AutopathCounts) -> SearchPath:
    if not settings.kubernetes:
        return SearchPath(settings, FixedSearch(settings.search), counts)
    if (cluster := block.cluster) is not None:
        return SearchPath(settings, ClusterSearch(cluster.kubernetes, cluster.state, settings.search), counts)
    # The block forwards to a cluster's DNS; names outside the cluster belong to other blocks.
    search = DistantClusterSearch(settings.cluster_domains, settings.search)
    if listener.neighbours is None:
        return SearchPath(settings, search, counts)
    own = frozenset(key.origin for key in block.block.keys if (key.port, key.tls) == (listener.port, listener.tls))
    rotates = "loadbalance" in block.block.settings
    return SearchPath(settings, search, counts, listener.neighbours(own, rotates))


def readings(source: MetricsSource) -> Iterator[Published]:
    """The counter of names found further on in a search list, under CoreDNS's name."""
    yield Reading(
        "coredns_autopath_success",
        "Names that were found further on in a search list.",
        "counter",
        ("server",),
        lambda: [(labels, counts.successes) for labels, counts in source.shared.all(AutopathCounts)],
    )


PLUGIN: Final = Plugin(
    name="autopath",
    coredns=differs(
        Effect.ANSWER,
        "@kubernetes reads the namespace off the name, so that Pods need not be watched, and works in front of a "
        "cluster's DNS, too",
    ),
    parse=parse_autopath,
    zones=origins,
    setup=_setup,
    reads=Reads.SPELLING,
    check=_check,
    metrics=readings,
)
