"""The parser of the `loadbalance` directive, and its place in a server block."""

from dataclasses import replace
from typing import Final

from topodns.corefile.arguments import choice, duration, fold_options, networks, only_arg, wrong
from topodns.corefile.parser import Directive
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.loadbalance.handler import LoadBalancer
from topodns.plugins.loadbalance.settings import Loadbalance, LoadbalancePolicy
from topodns.plugins.loadbalance.source import WeightSource
from topodns.plugins.plugin import FastPath, Plugin
from topodns.plugins.setup import BlockSetup, Install, everywhere
from topodns.query.plugin import ChainPart


def parse_loadbalance(directive: Directive, context: Context) -> Loadbalance:
    """`loadbalance [round_robin | weighted FILE]`, with `prefer`, and `reload` if weighted. Raises ConfigError."""
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


def _setup(settings: Loadbalance, block: BlockSetup) -> Install:
    rng = block.process.rng
    if settings.policy is not LoadbalancePolicy.WEIGHTED:
        return everywhere(ChainPart(wrapper=block.provide(LoadBalancer(settings, rng))))
    source = WeightSource(settings.weight_file, settings.reload)
    source.poller.load()
    block.run(source.poller)
    return everywhere(ChainPart(wrapper=block.provide(LoadBalancer(settings, rng, source.weights))))


PLUGIN: Final = Plugin(
    name="loadbalance",
    coredns=differs(Effect.ANSWER, "of more than 64 addresses only the first 64 are shuffled, after a rotation of all"),
    parse=parse_loadbalance,
    setup=_setup,
    fast_path=FastPath.PASSED,
)
