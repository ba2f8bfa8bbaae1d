"""The settings and parser of the `loadbalance` directive."""

from dataclasses import dataclass, replace
from enum import Enum
from ipaddress import IPv4Network, IPv6Network

from topodns.corefile.arguments import choice, duration, fold_options, networks, only_arg, wrong
from topodns.corefile.parser import Directive
from topodns.plugins.context import Context


class LoadbalancePolicy(Enum):
    ROUND_ROBIN = "round_robin"
    WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True)
class Loadbalance:
    policy: LoadbalancePolicy = LoadbalancePolicy.ROUND_ROBIN
    weight_file: str = ""  # for WEIGHTED
    reload: float = 30.0  # seconds between checks of weight_file; 0: never
    prefer: tuple[IPv4Network | IPv6Network, ...] = ()  # addresses in these come first


def parse_loadbalance(directive: Directive, context: Context) -> Loadbalance:
    """`loadbalance [round_robin | weighted FILE]`."""
    policies = {policy.value: policy for policy in LoadbalancePolicy}
    policy = choice(directive, directive.args[0], policies) if directive.args else LoadbalancePolicy.ROUND_ROBIN
    if policy is LoadbalancePolicy.ROUND_ROBIN:
        if len(directive.args) > 1:
            raise wrong(directive, "round_robin, or weighted FILE")
        return fold_options(directive, Loadbalance(), {"prefer": _prefer})
    if len(directive.args) != 2:
        raise wrong(directive, "weighted and one file")
    weighted = Loadbalance(policy, context.readable_file(directive, directive.args[1]))
    return fold_options(directive, weighted, {"prefer": _prefer, "reload": _weights_reload})


def _prefer(option: Directive, settings: Loadbalance) -> Loadbalance:
    return replace(settings, prefer=settings.prefer + networks(option))


def _weights_reload(option: Directive, settings: Loadbalance) -> Loadbalance:
    return replace(settings, reload=duration(option, only_arg(option, "a duration")))
