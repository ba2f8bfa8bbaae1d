"""Parser of `forward FROM TO... { options }`: CoreDNS's options."""

import logging
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from typing import Final

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
from topodns.corefile.errors import nearest, shown
from topodns.corefile.parser import Directive
from topodns.corefile.zones import parse_origins
from topodns.dns.message import Option
from topodns.dns.name import BadName, Name, parse_name
from topodns.dns.rrtype import ADDRESS_TYPES, RCODES, Rcode, parse_rcode
from topodns.plugins.cancel import PLUGIN as CANCEL
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.debug import PLUGIN as DEBUG
from topodns.plugins.forward.destinations import (
    EXPECTED,
    BadDestination,
    check_server_name,
    parse_destination,
    upstreams_of,
)
from topodns.plugins.forward.flight import DEADLINE
from topodns.plugins.forward.handler import Forwarding, Options
from topodns.plugins.forward.lazy_upstream import LazyUpstream
from topodns.plugins.forward.metrics import readings
from topodns.plugins.forward.settings import (
    DohMethod,
    Forward,
    ForwardTls,
    HealthCheck,
    UpstreamPolicy,
    UpstreamTransport,
)
from topodns.plugins.forward.single_flight import ForwardShared
from topodns.plugins.plugin import FastPath, Plugin, all_origins
from topodns.plugins.setup import NO_IDENTITY, BlockSetup, Identity, Install
from topodns.query.plugin import ChainPart

log = logging.getLogger(__name__)

MAX_DESTINATIONS: Final = 15  # as in CoreDNS; a file counts once

_Reader = Callable[[Directive, Forward], Forward]
_MOST: Final = 2**32 - 1  # the range of CoreDNS's uint32 options
_POLICIES: Final = {policy.value: policy for policy in UpstreamPolicy}


def parse_forward(directive: Directive, context: Context) -> tuple[Forward, ...]:
    """A tuple of one `Forward`. Files are relative to the Corefile's directory and are read now."""
    if len(directive.args) < 2:
        raise wrong(directive, f"a zone and where to forward to: {EXPECTED}")
    origin, *destinations = directive.args
    if len(destinations) > MAX_DESTINATIONS:
        raise directive.error(f"'forward' has {len(destinations)} destinations, expected at most {MAX_DESTINATIONS}")
    once_each(directive, adding_up=("except", "next", "failover"))
    server_name = _server_name(directive)
    upstreams = upstreams_of(directive, destinations, context, server_name)
    readers = {**_READERS, "tls": _tls_reader(context)}
    settings = Forward(parse_origins(directive, (origin,)), upstreams, file=directive.file, line=directive.line)
    settings = fold_options(directive, settings, readers)
    if settings.max_age and settings.max_age < settings.expire:
        raise directive.error(
            f"'forward' has max_age {settings.max_age:g}s and expire {settings.expire:g}s, "
            "expected a max_age of at least expire"
        )
    return (settings,)


def _server_name(directive: Directive) -> str:
    """The argument of `tls_servername`, "" without one; needed to parse the destinations."""
    for option in directive.body:
        if option.name == "tls_servername":
            return check_server_name(option, only_arg(option, "the name in the certificates of the servers"))
    return ""


def _except(option: Directive, settings: Forward) -> Forward:
    origins = parse_origins(option, some_args(option, "the zones that are not forwarded"))
    return replace(settings, excepted=settings.excepted + origins)


def _expire(option: Directive, settings: Forward) -> Forward:
    return replace(settings, expire=_one_duration(option))


def _max_age(option: Directive, settings: Forward) -> Forward:
    return replace(settings, max_age=_one_duration(option))


def _read_timeout(option: Directive, settings: Forward) -> Forward:
    seconds = _one_duration(option)
    if seconds == 0:
        raise wrong(option, "a duration of more than 0")
    return replace(settings, read_timeout=seconds)


def _max_idle_conns(option: Directive, settings: Forward) -> Forward:
    return replace(settings, max_idle_conns=_one_number(option))


def _max_fails(option: Directive, settings: Forward) -> Forward:
    return replace(settings, max_fails=_one_number(option))


def _max_connect_attempts(option: Directive, settings: Forward) -> Forward:
    return replace(settings, max_connect_attempts=_one_number(option))


def _max_concurrent(option: Directive, settings: Forward) -> Forward:
    return replace(settings, max_concurrent=_one_number(option))


def _policy(option: Directive, settings: Forward) -> Forward:
    return replace(settings, policy=only_choice(option, _POLICIES))


def _next(option: Directive, settings: Forward) -> Forward:
    return replace(settings, next_rcodes=settings.next_rcodes | _rcodes(option))


def _failover(option: Directive, settings: Forward) -> Forward:
    rcodes = _rcodes(option)
    if Rcode.NOERROR in rcodes:
        raise option.error("'failover' has NOERROR, expected response codes of answers that are not good enough")
    return replace(settings, failover=settings.failover | rcodes)


def _source_address(option: Directive, settings: Forward) -> Forward:
    text = only_arg(option, "an IP address of this machine")
    try:
        return replace(settings, source_address=str(ip_address(text)))
    except ValueError:
        raise wrong(option, "an IP address of this machine") from None


def _health_check(option: Directive, settings: Forward) -> Forward:
    """`health_check DURATION [no_rec] [domain FQDN]`."""
    no_body(option)
    if not option.args:
        raise wrong(option, "a duration, and perhaps no_rec, and domain and a name")
    first, *rest = option.args
    check = HealthCheck(duration(option, first))
    while rest:
        word = rest.pop(0)
        if word == "no_rec":
            check = replace(check, recursion_desired=False)
        elif word == "domain" and rest:
            check = replace(check, domain=_domain(option, rest.pop(0)))
        else:
            raise option.error(f"'health_check' has {shown(word)}, expected no_rec, or domain and a name")
    return replace(settings, health_check=check)


def _domain(option: Directive, text: str) -> Name:
    try:
        return parse_name(text)
    except BadName as problem:
        raise option.error(f"'health_check' has no name after domain: {problem}") from None


def _tls_reader(context: Context) -> _Reader:
    def tls(option: Directive, settings: Forward) -> Forward:
        """`tls [CERT KEY] [CA]`."""
        no_body(option)
        paths = [context.readable_file(option, path) for path in option.args]
        match paths:
            case []:
                return replace(settings, tls=ForwardTls())
            case [ca]:
                return replace(settings, tls=ForwardTls(ca=ca))
            case [certificate, key, *ca] if len(ca) <= 1:
                return replace(settings, tls=ForwardTls(certificate, key, *ca))
        raise wrong(option, "the files of a certificate and its key, or of a CA, or of all three, or none")

    return tls


def _tls_servername(_: Directive, settings: Forward) -> Forward:
    return settings  # the destinations were parsed with it


def _doh_method(option: Directive, settings: Forward) -> Forward:
    return replace(settings, doh_method=only_choice(option, {each.value: each for each in DohMethod}))


def _resolver(option: Directive, settings: Forward) -> Forward:
    words = some_args(option, "addresses of name servers, ADDRESS[:PORT]")
    try:
        found = [parse_destination(word) for word in words]
    except BadDestination as problem:
        raise option.error(f"'resolver' has {shown(' '.join(words))}, {problem}") from None
    resolvers = tuple(each for each in found if each is not None and each.transport is UpstreamTransport.DNS)
    if len(resolvers) < len(words):
        raise wrong(option, "addresses of name servers, ADDRESS[:PORT]")
    return replace(settings, resolvers=resolvers)


def _one_duration(option: Directive) -> float:
    return duration(option, only_arg(option, "a duration"))


def _one_number(option: Directive) -> int:
    return whole(option, only_arg(option, f"a whole number from 0 to {_MOST}"), 0, _MOST)


def _rcodes(option: Directive) -> frozenset[int]:
    return frozenset(_rcode(option, word) for word in some_args(option, "response codes such as SERVFAIL"))


def _rcode(option: Directive, word: str) -> int:
    rcode = parse_rcode(word)
    if rcode is None:
        near = nearest(word, [name.lower() for name in RCODES])
        expected = f"did you mean '{near.upper()}'?" if near else "expected a response code such as SERVFAIL"
        raise option.error(f"'{option.name}' has {shown(word)}, {expected}")
    return rcode


_READERS: Final[dict[str, _Reader]] = {
    "except": _except,
    "force_tcp": switch("force_tcp"),
    "prefer_udp": switch("prefer_udp"),
    "expire": _expire,
    "max_age": _max_age,
    "max_idle_conns": _max_idle_conns,
    "read_timeout": _read_timeout,
    "max_fails": _max_fails,
    "max_connect_attempts": _max_connect_attempts,
    "tls_servername": _tls_servername,
    "policy": _policy,
    "health_check": _health_check,
    "max_concurrent": _max_concurrent,
    "next": _next,
    "next_on_nodata": switch("next_on_nodata"),
    "failfast_all_unhealthy_upstreams": switch("failfast"),
    "failover": _failover,
    "source_address": _source_address,
    "doh_method": _doh_method,
    "resolver": _resolver,
}


def _setup(settings: tuple[Forward, ...], block: BlockSetup) -> Install:
    parts = [_part(each, block, followed=number < len(settings)) for number, each in enumerate(settings, 1)]
    return lambda listener: parts


def _part(settings: Forward, block: BlockSetup, followed: bool) -> ChainPart:
    process = block.process
    shared = process.shared.get(ForwardShared)
    upstreams = [
        block.provide(LazyUpstream(settings, address, shared.connections[address.name], shared.udp_sockets))
        for address in settings.upstreams
    ]
    forwarding = Forwarding(
        settings=settings,
        upstreams=upstreams,
        timers=process.timers,
        rng=process.rng,
        in_flight=shared.in_flight,
        counts=shared.counts,
        followed=followed,
        options=_options_for(settings, process.identity or NO_IDENTITY),
        deadline=min(DEADLINE, CANCEL.settings_of(block.block) or DEADLINE),
        names_upstreams=DEBUG.settings_of(block.block) is not None,
        may_hedge=shared.udp_sockets.has_spare,
    )
    if process.identity is not None:  # a node-cache publishes the reachability of upstreams, also without queries
        block.on_start(forwarding.watch)
    block.on_close(forwarding.close)
    for upstream in upstreams:
        block.on_close(upstream.close)
    return ChainPart(step=block.provide(forwarding))


def _options_for(settings: Forward, identity: Identity) -> Options:
    """The EDNS option with this node-cache's Node name if all upstreams are the cluster DNS, else none.

    Logs a warning if some of them are, but not all.
    """
    trusted = [address.host in identity.upstreams for address in settings.upstreams]
    if not identity.node_name or not any(trusted):
        return ()
    if not all(trusted):
        names = ", ".join(address.name for address in settings.upstreams)
        log.warning("plugin/forward: %s are not all the cluster DNS, so the node's name is sent to none of them", names)
        return ()
    return ((Option.NODE_IDENTITY, identity.node_name.encode()),)


PLUGIN: Final = Plugin(
    name="forward",
    coredns=differs(
        Effect.BOUNDS,
        "with random and round_robin a second upstream is asked after 0.5s, a query takes 4s at most, equal queries "
        "are sent once, and at most 256 of a client wait at a time; without max_age connections last 30s to 60s",
    ),
    parse=parse_forward,
    zones=all_origins,
    setup=_setup,
    adds_up=True,
    spells=ADDRESS_TYPES,
    fast_path=FastPath.PASSED,
    unanswered=Rcode.SERVFAIL,
    metrics=readings,
)
