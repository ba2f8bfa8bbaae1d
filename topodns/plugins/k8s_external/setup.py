"""The parser of the `k8s_external` directive, and its place in a server block."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from topodns.corefile.arguments import fold_options, once_each, only_arg, switch, whole, wrong
from topodns.corefile.parser import Directive
from topodns.corefile.zones import fallthrough
from topodns.dns.name import BadName, parse_name
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.k8s_external.handler import ExternalZone
from topodns.plugins.k8s_external.settings import K8sExternal
from topodns.plugins.kubernetes.setup import MAX_TTL
from topodns.plugins.plugin import Plugin, origins
from topodns.plugins.setup import BlockListener, BlockSetup, Install
from topodns.query.plugin import ChainPart


def parse_k8s_external(directive: Directive, context: Context) -> K8sExternal:
    once_each(directive)
    return fold_options(directive, K8sExternal(context.origins_of(directive)), _READERS)


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
    return replace(settings, ttl=whole(option, only_arg(option, "seconds"), 0, MAX_TTL))


def _fallthrough(option: Directive, settings: K8sExternal) -> K8sExternal:
    return replace(settings, fallthrough=fallthrough(option))


_READERS: Final[Mapping[str, Callable[[Directive, K8sExternal], K8sExternal]]] = {
    "apex": _apex,
    "ttl": _ttl,
    "headless": switch("headless"),
    "fallthrough": _fallthrough,
}


def _setup(settings: K8sExternal, block: BlockSetup) -> Install | None:
    cluster = block.cluster
    if cluster is None:
        return None

    def install(listener: BlockListener) -> tuple[ChainPart]:
        handler = ExternalZone(
            settings=settings,
            kubernetes=cluster.kubernetes,
            state=cluster.state,
            own_addresses=listener.addresses,
            chase=listener.chase,
        )
        return (ChainPart(step=handler),)

    return install


PLUGIN: Final = Plugin(
    name="k8s_external",
    coredns=differs(
        Effect.ANSWER, "a load balancer's hostname is one CNAME; names are SERVFAIL until the cluster is known"
    ),
    parse=parse_k8s_external,
    zones=origins,
    setup=_setup,
    requires=("kubernetes",),
)
