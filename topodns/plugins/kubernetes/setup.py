"""The `kubernetes` directive, option by option, as CoreDNS reads them.

An option given twice: the later one counts; `namespaces` and `manifests` add up.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from topodns.cluster.selector import BadSelector, Selector, parse_selector
from topodns.config.corefile import Directive
from topodns.config.directives.cluster_source import Reader, source_readers, with_source
from topodns.config.directives.context import Context
from topodns.config.errors import shown
from topodns.config.keys import parse_origins
from topodns.config.values import duration, flag, fold_options, once_each, only_arg, only_choice, some_args, whole
from topodns.dns.names import IN_ADDR_ARPA, IP6_ARPA, ROOT, Name, is_subdomain, name_text
from topodns.settings.kubernetes import KubernetesSettings, PodMode

MAX_TTL: Final = 3600  # seconds; CoreDNS's limit
_MAX_COUNT: Final = 2**31 - 1
_DROPPED: Final = {  # options of CoreDNS's past, as its release notes tell of them
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
    if all(_is_reverse(origin) for origin in origins):
        raise directive.error("'kubernetes' has reverse zones only, expected another one, such as cluster.local")
    once_each(directive, adding_up=("namespaces", "manifests"))
    readers = {**source_readers(context), **_READERS}
    settings = with_source(directive, fold_options(directive, KubernetesSettings(origins), readers, dropped=_DROPPED))
    _check_together(directive, settings)
    return settings


def _is_reverse(origin: Name) -> bool:
    return is_subdomain(origin, IN_ADDR_ARPA) or is_subdomain(origin, IP6_ARPA)


def _check_together(directive: Directive, settings: KubernetesSettings) -> None:
    if settings.namespaces and settings.namespace_labels is not None:
        raise directive.error("'kubernetes' has both 'namespaces' and 'namespace_labels', expected one of them")
    if settings.zonal and settings.noendpoints:
        raise directive.error("'kubernetes' has both 'zonal' and 'noendpoints', but 'zonal' is about endpoints")
    for origin in settings.multicluster:
        if origin not in settings.origins:
            served = ", ".join(map(name_text, settings.origins))
            raise directive.error(f"'multicluster' has {shown(name_text(origin))}, expected one of {served}")


def _namespaces(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, namespaces=settings.namespaces | frozenset(some_args(option, "names of namespaces")))


def _selector(option: Directive) -> Selector:
    try:
        return parse_selector(" ".join(some_args(option, "a label selector")))
    except BadSelector as problem:
        raise option.error(f"'{option.name}' is no label selector: {problem}") from None


def _namespace_labels(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, namespace_labels=_selector(option))


def _labels(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, labels=_selector(option))


def _pods(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, pods=only_choice(option, {mode.value: mode for mode in PodMode}))


def _endpoint_pod_names(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    flag(option)
    return replace(settings, endpoint_pod_names=True)


def _ttl(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, ttl=whole(option, only_arg(option, "seconds"), 0, MAX_TTL))


def _noendpoints(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    flag(option)
    return replace(settings, noendpoints=True)


def _ignore(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, ignore_empty_service=only_choice(option, {"empty_service": True}))


def _fallthrough(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, fallthrough=parse_origins(option, option.args) or (ROOT,))


def _multicluster(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    return replace(settings, multicluster=parse_origins(option, option.args))


def _zonal(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    flag(option)
    return replace(settings, zonal=True)


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
    "apiserver_qps": _unused_rate,  # these three limit clients that send more requests than we do
    "apiserver_burst": _unused_count,
    "apiserver_max_inflight": _unused_count,
    "namespaces": _namespaces,
    "namespace_labels": _namespace_labels,
    "labels": _labels,
    "pods": _pods,
    "endpoint_pod_names": _endpoint_pod_names,
    "ttl": _ttl,
    "noendpoints": _noendpoints,
    "fallthrough": _fallthrough,
    "ignore": _ignore,
    "multicluster": _multicluster,
    "zonal": _zonal,
    "startup_timeout": _startup_timeout,
}
