"""The parser of the `autopath` directive."""

from typing import Final

from topodns.corefile.arguments import some_args
from topodns.corefile.errors import ConfigError, shown
from topodns.corefile.parser import Directive
from topodns.corefile.resolv_conf import load_search_list
from topodns.corefile.zones import parse_origins
from topodns.dns.name import Name
from topodns.plugins.autopath.settings import Autopath
from topodns.plugins.context import Context

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
    if not search:
        raise directive.error(f"'autopath' has {shown(source)}, but that file has no 'search' line")
    return Autopath(origins, search)


def _host_search_list(path: str) -> tuple[Name, ...]:
    """Empty where the host's file is missing or malformed, as in CoreDNS: that is not an error of the Corefile."""
    try:
        return load_search_list(path, skip_bad=True)[:_HOST_DOMAINS]
    except ConfigError:
        return ()
