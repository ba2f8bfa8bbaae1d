"""The parser of the `kubernetes` directive, with CoreDNS's options.

Options may be given once, except `namespaces` and `manifests`, whose values add up.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from topodns.cluster.api_names import is_subdomain
from topodns.cluster.label_selector import BadSelector, Selector, parse_selector
from topodns.corefile.arguments import (
    duration,
    fold_options,
    no_body,
    once_each,
    only_arg,
    only_choice,
    some_args,
    switch,
    whole,
    wrong,
)
from topodns.corefile.errors import shown
from topodns.corefile.parser import Directive
from topodns.corefile.zones import fallthrough, parse_origins
from topodns.dns.name import is_reverse, name_text
from topodns.dns.rrtype import ADDRESS_TYPES, RRType
from topodns.kube.client.contract import ApiSettings
from topodns.plugins.compatibility import OURS, Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.kubernetes.handler import ClusterZone
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode, SnapshotSettings
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.plugins.plugin import FastPath, Plugin, origins
from topodns.plugins.setup import BlockListener, BlockSetup, Install
from topodns.query.label_limiter import LabelLimiters
from topodns.query.plugin import ChainPart
from topodns.topology.client_locator import ClientLocator

Reader = Callable[[Directive, KubernetesSettings], KubernetesSettings]

_URL: Final = "the URL of one API server, https://HOST[:PORT] or http://HOST[:PORT]"
_SNAPSHOT: Final = "a file, and perhaps `interval` and `max_age`, each with a duration"
_TLS_FILES: Final = 'the files of a client certificate, its key and a CA, "" for one that there is not'


def source_readers(context: Context) -> dict[str, Reader]:
    """The readers of the options for sources. Paths are relative to the Corefile's directory and must be readable."""

    def manifests(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
        paths = some_args(option, "paths of files or directories")
        readable = tuple(context.readable_path(option, path) for path in paths)
        return replace(settings, manifests=settings.manifests + readable)

    def tls(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
        files = (context.readable_file(option, path) if path else "" for path in _tls_files(option))
        certificate, key, ca = files
        return replace(settings, api=replace(_api(settings), tls=(certificate, key, ca)))

    def kubeconfig(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
        file, chosen = _file_and_context(option)
        path = context.readable_file(option, file)
        return replace(settings, api=replace(_api(settings), kubeconfig=path, context=chosen, place=option.place))

    def snapshot(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
        no_body(option)
        if len(option.args) not in (1, 3, 5):
            raise wrong(option, _SNAPSHOT)
        path, *times = option.args
        given = dict(zip(times[::2], times[1::2], strict=True))
        if len(given) * 2 < len(times) or not given.keys() <= {"interval", "max_age"}:
            raise wrong(option, _SNAPSHOT)
        seconds = {name: _at_least_a_second(option, text) for name, text in given.items()}
        return replace(settings, snapshot=SnapshotSettings(context.path(option, path), option, **seconds))

    return {"manifests": manifests, "endpoint": _endpoint, "tls": tls, "kubeconfig": kubeconfig, "snapshot": snapshot}


def with_source(directive: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    """The settings with exactly one source: manifests or an API server, by default the one of the service account.

    Raises ConfigError where there are two, of which CoreDNS would drop one, and for `tls` without `endpoint`.
    """
    api = _api(settings)
    given = {"manifests": settings.manifests, "kubeconfig": api.kubeconfig, "endpoint": api.endpoint}
    sources = [name for name, value in given.items() if value]
    if len(sources) > 1:
        raise directive.error(f"'kubernetes' has both '{sources[0]}' and '{sources[1]}', expected one of them")
    if api.tls is not None and not api.endpoint:
        raise directive.error("'kubernetes' has 'tls' without 'endpoint', which it is for")
    if settings.manifests and settings.snapshot is not None:
        raise directive.error("'kubernetes' has both 'manifests' and 'snapshot', which is for an API server")
    return settings if settings.manifests else replace(settings, api=replace(api, place=api.place or directive.place))


def _api(settings: KubernetesSettings) -> ApiSettings:
    return settings.api or ApiSettings()


def _endpoint(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    url = only_arg(option, _URL)
    if not _is_server(url):
        raise option.error(f"'endpoint' has {shown(url)}, expected {_URL}")
    return replace(settings, api=replace(_api(settings), endpoint=url.rstrip("/")))


def _is_server(text: str) -> bool:
    try:
        url = urlsplit(text)
        port = url.port  # raises where it is no number
    except ValueError:
        return False
    bare = text.isascii() and not any(sign in text for sign in "?#@\\") and text.isprintable() and " " not in text
    return url.scheme in ("http", "https") and bool(url.hostname) and port != 0 and bare


def _tls_files(option: Directive) -> tuple[str, ...]:
    no_body(option)
    if len(option.args) != 3:
        raise wrong(option, _TLS_FILES)
    certificate, key, _ = option.args
    if bool(certificate) != bool(key):
        raise option.error("'tls' has one of certificate and key, expected both or none")
    return option.args


def _at_least_a_second(option: Directive, text: str) -> float:
    seconds = duration(option, text)
    if seconds < 1:
        raise option.error(f"'{option.name}' has {shown(text)}, expected at least 1s")
    return seconds


def _file_and_context(option: Directive) -> tuple[str, str]:
    """The arguments of `kubeconfig`: a file, and the name of a context in it, "" for its current one.

    Raises ConfigError.
    """
    no_body(option)
    match option.args:
        case (file,):
            return file, ""
        case (file, chosen) if chosen:
            return file, chosen
    raise wrong(option, "a file and perhaps the name of a context")


MAX_TTL: Final = 3600  # seconds; CoreDNS's limit
_MAX_COUNT: Final = 2**31 - 1
_DROPPED: Final = {  # options that CoreDNS has removed, by its release notes
    "autopath": "CoreDNS made it a directive; write `autopath @kubernetes` beside `kubernetes`",
    "cidrs": "CoreDNS dropped it; write the prefixes behind `kubernetes`, among its zones",
    "federation": "CoreDNS dropped federation in 1.7; leave it out",
    "resyncperiod": "CoreDNS dropped it in 1.7; leave it out",
    "transfer": "CoreDNS dropped it in 1.8; leave it out: transfers are REFUSED",
    "upstream": "CoreDNS dropped it in 1.7; leave it out: targets outside the cluster are always looked up",
}
_RATE: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,9})?")


def parse_kubernetes(directive: Directive, context: Context) -> KubernetesSettings:
    origins = context.origins_of(directive)
    if all(is_reverse(origin) for origin in origins):
        raise directive.error("'kubernetes' has reverse zones only, expected another one, such as cluster.local")
    once_each(directive, adding_up=("namespaces", "manifests"))
    readers = {**source_readers(context), **_READERS}
    settings = with_source(directive, fold_options(directive, KubernetesSettings(origins), readers, dropped=_DROPPED))
    _check_together(directive, settings)
    return settings


def _check_together(directive: Directive, settings: KubernetesSettings) -> None:
    if settings.namespaces and settings.namespace_labels is not None:
        raise directive.error("'kubernetes' has both 'namespaces' and 'namespace_labels', expected one of them")
    if settings.zonal and settings.noendpoints:
        raise directive.error("'kubernetes' has both 'zonal' and 'noendpoints', but 'zonal' is about endpoints")
    for origin in settings.multicluster:
        if origin not in settings.origins:
            served = ", ".join(map(name_text, settings.origins))
            raise directive.error(f"'multicluster' has {shown(name_text(origin))}, expected one of {served}")
    if settings.cluster_id and not settings.multicluster:
        raise directive.error("'kubernetes' has 'cluster_id' without 'multicluster', which it is for")


def _namespaces(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    names = frozenset(some_args(option, "names of namespaces"))
    places = {**settings.places, **{f"namespaces {name}": option.place for name in names}}
    return replace(settings, namespaces=settings.namespaces | names, places=places)


def _selector(option: Directive) -> Selector:
    try:
        return parse_selector(" ".join(some_args(option, "a label selector")))
    except BadSelector as problem:
        raise option.error(f"'{option.name}' is no label selector: {problem}") from None


def _namespace_labels(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, namespace_labels=_selector(option), places=_places(option, settings))


def _labels(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, labels=_selector(option), places=_places(option, settings))


def _places(option: Directive, settings: KubernetesSettings) -> Mapping[str, str]:
    return {**settings.places, option.name: option.place}


def _pods(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, pods=only_choice(option, {mode.value: mode for mode in PodMode}))


def _ttl(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, ttl=whole(option, only_arg(option, "seconds"), 0, MAX_TTL))


def _ignore(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, ignore_empty_service=only_choice(option, {"empty_service": True}))


def _fallthrough(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, fallthrough=fallthrough(option))


def _multicluster(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    no_body(option)
    return replace(settings, multicluster=parse_origins(option, option.args))


def _cluster_id(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    text = only_arg(option, "the id of this cluster")
    if not is_subdomain(text):
        raise option.error(f"'cluster_id' has {shown(text)}, expected a name of a-z, 0-9, '-' and '.', such as east")
    return replace(settings, cluster_id=text)


def _startup_timeout(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, startup_timeout=duration(option, only_arg(option, "a duration")))


def _unused_rate(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    text = only_arg(option, "queries per second")
    if not _RATE.fullmatch(text):
        raise option.error(f"'{option.name}' has {shown(text)}, expected a number of at least 0")
    return settings


def _unused_count(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    whole(option, only_arg(option, "a whole number"), 0, _MAX_COUNT)
    return settings


_READERS: Final[Mapping[str, Reader]] = {
    "apiserver_qps": _unused_rate,  # these three limit API requests; topodns sends too few for that
    "apiserver_burst": _unused_count,
    "apiserver_max_inflight": _unused_count,
    "namespaces": _namespaces,
    "namespace_labels": _namespace_labels,
    "labels": _labels,
    "pods": _pods,
    "endpoint_pod_names": switch("endpoint_pod_names"),
    "ttl": _ttl,
    "noendpoints": switch("noendpoints"),
    "fallthrough": _fallthrough,
    "ignore": _ignore,
    "multicluster": _multicluster,
    "cluster_id": _cluster_id,
    "zonal": switch("zonal"),
    "startup_timeout": _startup_timeout,
}


def _setup(settings: KubernetesSettings, block: BlockSetup) -> Install | None:
    cluster = block.cluster
    if cluster is None:
        return None
    block.provide(cluster.metadata)
    if cluster.locator is not None:
        block.vary_by(partial(_view, cluster.locator, cluster.limiters))

    def install(listener: BlockListener) -> tuple[ChainPart]:
        kubernetes = KubernetesZone(
            settings=cluster.kubernetes,
            topology=cluster.topology,
            state=cluster.state,
            locator=cluster.locator,
            own_addresses=listener.addresses,
            chase=listener.chase,
            limiters=cluster.limiters,
            pod_wait=cluster.pod_wait,
        )
        return (ChainPart(step=ClusterZone(kubernetes)),)

    return install


@dataclass(frozen=True, slots=True)
class OnNode:
    """Packet cache key of the clients on one Node of a cluster: they share ready-made answers."""

    name: str


@dataclass(frozen=True, slots=True)
class Unlocated:
    """Packet cache key of clients on no known Node that share a label in metrics: they share answers as well.

    `prefix` is their network (/24 or /56, packed), None for all networks beyond the label limit.
    """

    prefix: bytes | None


def _view(locator: ClientLocator, limiters: LabelLimiters, address: bytes) -> OnNode | Unlocated:
    node_name = locator.locate(address).node_name
    return OnNode(node_name) if node_name else Unlocated(limiters.named_prefix(address))


_NO_RATE: Final = "read and without effect: topodns sends an API server too few requests for a limit"

PLUGIN: Final = Plugin(
    name="kubernetes",
    coredns=differs(
        Effect.ANSWER,
        "a name that may exist is SERVFAIL while watches are incomplete, and UDP answers are at most 1232 octets",
        manifests=differs(Effect.ANSWER, OURS),
        cluster_id=differs(Effect.ANSWER, OURS),
        snapshot=differs(Effect.ANSWER, OURS),
        apiserver_qps=differs(Effect.BOUNDS, _NO_RATE),
        apiserver_burst=differs(Effect.BOUNDS, _NO_RATE),
        apiserver_max_inflight=differs(Effect.BOUNDS, _NO_RATE),
    ),
    parse=parse_kubernetes,
    zones=origins,
    setup=_setup,
    spells=ADDRESS_TYPES | {RRType.SOA},
    fast_path=FastPath.PASSED,
)
