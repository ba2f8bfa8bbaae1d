"""Directives that work beside `kubernetes`: `autopath`, `dns64`, `k8s_external`, option by option as CoreDNS's."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from ipaddress import IPv6Network
from typing import Final

from topodns.config.corefile import Directive
from topodns.config.directives.context import Context
from topodns.config.errors import ConfigError, shown
from topodns.config.keys import parse_origins
from topodns.config.resolv_conf import load_search_list
from topodns.config.values import (
    flag,
    fold_options,
    no_body,
    once_each,
    only_arg,
    parse_network,
    some_args,
    whole,
    wrong,
)
from topodns.dns.names import ROOT, BadName, Name, parse_name
from topodns.settings.autopath import Autopath
from topodns.settings.dns64 import Dns64
from topodns.settings.k8s_external import K8sExternal

_RESOLV_CONF: Final = "/etc/resolv.conf"
_KUBERNETES: Final = "@kubernetes"
_HOST_DOMAINS: Final = 29  # the kubelet gives a Pod 32 domains at most, and three of them are the cluster's
_PREFIX_LENGTHS: Final = (32, 40, 48, 56, 64, 96)  # RFC 6052 section 2.2
_MAX_TTL: Final = 3600  # seconds; CoreDNS's limit


def parse_autopath(directive: Directive, context: Context, resolv_conf: str = _RESOLV_CONF) -> Autopath:
    """`autopath [ZONES...] FILE|@kubernetes`. `resolv_conf` is this host's, which need not be there."""
    *words, source = some_args(directive, f"a file like /etc/resolv.conf or {_KUBERNETES}")
    origins = parse_origins(directive, words) or context.origins
    if source == _KUBERNETES:
        return Autopath(origins, _host_search_list(resolv_conf), kubernetes=True)
    if source.startswith("@"):
        raise directive.error(f"'autopath' has {shown(source)}, expected a file or {_KUBERNETES}")
    path = context.readable_file(directive, source)
    search = load_search_list(path)
    if not search:
        raise directive.error(f"'autopath' has {shown(source)}, but that file has no 'search' line")
    return Autopath(origins, search)


def _host_search_list(path: str) -> tuple[Name, ...]:
    """None where the host's file is missing or broken, as in CoreDNS: no line of a Corefile is to blame for that."""
    try:
        return load_search_list(path, skip_bad=True)[:_HOST_DOMAINS]
    except ConfigError:
        return ()


def parse_dns64(directive: Directive, context: Context) -> Dns64:
    once_each(directive)
    settings = Dns64()
    if directive.args:
        settings = _prefix(replace(directive, body=()), settings)
    return fold_options(directive, settings, _DNS64_READERS)


def _prefix(option: Directive, settings: Dns64) -> Dns64:
    text = only_arg(option, "one IPv6 prefix")
    network = parse_network(text)
    if not isinstance(network, IPv6Network) or network.prefixlen not in _PREFIX_LENGTHS or "/" not in text:
        raise option.error(f"'dns64' has the prefix {shown(text)}, expected an IPv6 one: /32, 40, 48, 56, 64 or 96")
    return replace(settings, prefix=network.network_address.packed[: network.prefixlen // 8])


def _translate_all(option: Directive, settings: Dns64) -> Dns64:
    flag(option)
    return replace(settings, translate_all=True)


def _allow_ipv4(option: Directive, settings: Dns64) -> Dns64:
    flag(option)
    return replace(settings, allow_ipv4=True)


_DNS64_READERS: Final[Mapping[str, Callable[[Directive, Dns64], Dns64]]] = {
    "prefix": _prefix,
    "translate_all": _translate_all,
    "allow_ipv4": _allow_ipv4,
}


def parse_k8s_external(directive: Directive, context: Context) -> K8sExternal:
    once_each(directive)
    return fold_options(directive, K8sExternal(context.origins_of(directive)), _EXTERNAL_READERS)


def _apex(option: Directive, settings: K8sExternal) -> K8sExternal:
    text = only_arg(option, "one label")
    try:
        label = parse_name(text)
    except BadName as problem:
        raise option.error(f"'apex' has no label: {problem}") from None
    if len(label) != 1:
        raise wrong(option, "one label, without dots")
    return replace(settings, apex=label[0])


def _ttl(option: Directive, settings: K8sExternal) -> K8sExternal:
    return replace(settings, ttl=whole(option, only_arg(option, "seconds"), 0, _MAX_TTL))


def _headless(option: Directive, settings: K8sExternal) -> K8sExternal:
    flag(option)
    return replace(settings, headless=True)


def _fallthrough(option: Directive, settings: K8sExternal) -> K8sExternal:
    no_body(option)
    return replace(settings, fallthrough=parse_origins(option, option.args) or (ROOT,))


_EXTERNAL_READERS: Final[Mapping[str, Callable[[Directive, K8sExternal], K8sExternal]]] = {
    "apex": _apex,
    "ttl": _ttl,
    "headless": _headless,
    "fallthrough": _fallthrough,
}
