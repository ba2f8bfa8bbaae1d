"""Conditions of a node that limit a node cache (IPVS, Cilium, policy drop), as log lines. Pure but for `check_node`."""

import json
import socket
from collections.abc import Collection
from contextlib import suppress
from typing import Any, Final

from topodns.hostnet.commands import find_program, run

_IPVS: Final = (
    "kube-proxy is in IPVS mode here (kube-ipvs0 is there): it holds the cluster DNS address itself, so only an address"
    " of our own is served, and pods have to be given that (kubelet's --cluster-dns); when this process dies, no other"
    " one takes over"
)
_CILIUM: Final = (
    "Cilium is here ({link} is there): where it replaces kube-proxy it redirects pods before our rules see them;"
    " it needs a CiliumLocalRedirectPolicy for the cluster DNS Service"
)
_DROPS: Final = (
    "{where} drops what it does not accept: an accept of ours cannot overrule it, so it has to accept DNS to and from"
    " the listen addresses itself"
)


def notices(link_names: Collection[str], dropping: Collection[str]) -> tuple[str, ...]:
    """A log line for each of these conditions. `link_names`: the node's links; `dropping`: from `dropping_chains`."""
    found = [_IPVS] if "kube-ipvs0" in link_names else []
    cilium = next((name for name in ("cilium_host", "cilium_net") if name in link_names), None)
    if cilium is not None:
        found.append(_CILIUM.format(link=cilium))
    return (*found, *(_DROPS.format(where=where) for where in dropping))


def dropping_chains(listing: str) -> tuple[str, ...]:
    """From the output of `nft -j list chains`: names for the log of the input and output chains with policy drop.

    iptables chains are left out because we add ACCEPT rules there. Raises ValueError or KeyError if malformed.
    """
    parts: list[dict[str, Any]] = json.loads(listing)["nftables"]
    chains = [part["chain"] for part in parts if "chain" in part]
    return tuple(
        f"chain {chain['name']} of the nftables table {chain['family']} {chain['table']}"
        for chain in chains
        if chain.get("policy") == "drop" and chain.get("hook") in ("input", "output") and not _of_iptables(chain)
    )


def _of_iptables(chain: dict[str, Any]) -> bool:
    return chain["family"] in ("ip", "ip6") and chain["table"] == "filter" and chain["name"] in ("INPUT", "OUTPUT")


def check_node() -> tuple[str, ...]:
    """`notices` for this node. Runs nft if it is installed, so it blocks."""
    dropping: tuple[str, ...] = ()
    if nft := find_program("nft"):
        listed = run((nft, "-j", "list", "chains"))
        with suppress(ValueError, KeyError, TypeError):
            dropping = dropping_chains(listed.output)
    return notices([name for _, name in socket.if_nameindex()], dropping)
