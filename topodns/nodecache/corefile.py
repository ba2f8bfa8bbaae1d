"""The Corefile of a node-cache: reads its files, fills in the template, and validates the result before its use."""

import os
from collections.abc import Callable, Mapping
from typing import Final

from topodns.app.load import settings_from_text
from topodns.corefile.errors import ConfigError, Problems
from topodns.corefile.files import read_text, reason
from topodns.netlink.route import addresses_of
from topodns.nodecache.kube_dns import (
    STUB_DOMAINS,
    UPSTREAM_NAMESERVERS,
    parse_stub_domains,
    parse_upstream_nameservers,
    stub_block,
)
from topodns.nodecache.settings import FileText, NodeCacheFlags, NodeConfigTexts, RenderedCorefile
from topodns.nodecache.template import RESOLV_CONF, TemplateValues, fill, find_cluster_dns
from topodns.plugins.block import Settings
from topodns.plugins.cache.settings import Cache, ServeStale, Share
from topodns.plugins.context import Context

_MAX_STALE: Final = 86_400.0  # seconds beyond the TTL, as RFC 8767 section 5 allows: one day to three

NODE_CACHE: Final = Cache(
    # No TTL of an upstream is raised: names of the cluster DNS have 5 s and less because they change.
    success=Share(3600, min_ttl=0),
    denial=Share(1800, min_ttl=0),
    serve_stale=ServeStale(_MAX_STALE, verify=True),
)

_NO_TEMPLATE: Final = "is empty, expected the template of the Corefile"
_NO_COREFILE: Final = "is empty, expected a Corefile"


class NodeCorefile:
    """Makes the Corefile from the files of these flags.

    `environment` is that of the process; `resolv_conf` has the servers for names outside the cluster.
    """

    def __init__(
        self,
        flags: NodeCacheFlags,
        environment: Mapping[str, str],
        resolv_conf: str = RESOLV_CONF,
        refuse: Callable[[Settings], object] = lambda settings: None,
    ) -> None:
        """`refuse` raises ConfigError for settings that are valid in syntax but cannot work."""
        self._flags = flags
        self._refuse = refuse
        self._environment = environment
        self._resolv_conf = resolv_conf
        self._cluster_dns = find_cluster_dns(flags.upstream_service, environment)

    @property
    def cluster_dns(self) -> str:
        """The address of the cluster DNS; "" if unknown."""
        return self._cluster_dns.address

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths to watch: the template, the directory of the ConfigMap, and without a template -conf.

        They need not exist.
        """
        flags = self._flags
        own = (flags.conf,) if flags.conf and not os.path.exists(flags.base_corefile) else ()
        return flags.base_corefile, flags.kube_dns_directory, *own

    def read(self) -> NodeConfigTexts:
        """The files as they are now. Raises nothing: a read error becomes a problem of the rendered Corefile.

        Where the template cannot be read and there is a file at -conf, that one counts, as in NodeLocal DNSCache, for
        which kubespray and KubeKey have written it.
        """
        directory = self._flags.kube_dns_directory
        template = _read(self._flags.base_corefile)
        own = _read(self._flags.conf) if template.text is None and self._flags.conf else FileText("")
        if own.text is None and template.text is None and not template.problem:
            own_too = f", nor is there the file of -conf, {own.path}" if self._flags.conf else ""
            missing = f"cannot be read: No such file or directory{own_too}"
            template = own if own.problem else FileText(template.path, problem=missing)
        return NodeConfigTexts(
            template if own.text is None else own,
            stub_domains=_read(os.path.join(directory, STUB_DOMAINS)),
            upstream_nameservers=_read(os.path.join(directory, UPSTREAM_NAMESERVERS)),
            without_template=own.text is not None,
        )

    def render(self, texts: NodeConfigTexts) -> RenderedCorefile:
        """The Corefile of these texts, validated; problems are in the result, not raised.

        Reads the files that it imports.
        """
        try:
            text, problems = self._fill(texts)
            if not problems:
                self._validate(text, texts)
        except ConfigError as problem:
            return RenderedCorefile("", tuple(map(str, problem.each)))
        return RenderedCorefile(text, problems)

    def settings(self, text: str) -> Settings:
        """The settings of a rendered Corefile. Raises ConfigError."""
        host = Context((), cache=NODE_CACHE, interface_addresses=self._interface_addresses)
        return settings_from_text(text, self._name, self._flags.port, self._environment, host=host)

    def _interface_addresses(self, name: str) -> tuple[str, ...] | None:
        """As `addresses_of`; for the node cache's own link, which is made after the Corefile is read, those it gets."""
        flags = self._flags
        if flags.setup_interface and name == flags.interface_name:
            return tuple(map(str, flags.local_ips))
        return addresses_of(name)

    @property
    def _name(self) -> str:
        """The Corefile's name in messages and base of its relative paths, as in NodeLocal DNSCache."""
        return self._flags.conf or self._flags.base_corefile

    def _fill(self, texts: NodeConfigTexts) -> tuple[str, tuple[str, ...]]:
        flags, template = self._flags, texts.template
        if not template.text or not template.text.strip():
            empty = _NO_COREFILE if texts.without_template else _NO_TEMPLATE
            raise ConfigError(template.path, 0, template.problem or empty)
        if texts.without_template:
            return template.text, ()
        upstreams = parse_upstream_nameservers(texts.upstream_nameservers)
        stubs = parse_stub_domains(texts.stub_domains)
        values = TemplateValues(
            flags.local_ips, self._cluster_dns, upstreams, flags.prometheus_listen, self._resolv_conf
        )
        text, problems = fill(template.text, template.path, values)
        return text + "".join(stub_block(stub, flags.local_ips, flags.port) for stub in stubs), problems

    def _validate(self, text: str, texts: NodeConfigTexts) -> None:
        """Raise the ConfigError of an invalid Corefile, or of `refuse`, with its position in the source file."""
        problems = Problems()
        try:
            self._refuse(self.settings(text))
        except ConfigError as problem:
            problems.note(problem)
        if problems:
            raise problems.error(lambda problem: self._at_source(problem, texts))

    def _at_source(self, problem: ConfigError, texts: NodeConfigTexts) -> ConfigError:
        """The error with its source instead of the rendered text: the template, whose lines keep their numbers.

        An error of another file is as it was. Lines after those of the template are blocks of stub domains: for them,
        their file without a line number.
        """
        if problem.file != self._name:
            return problem
        assert texts.template.text is not None
        text = problem.problem.replace(f"{self._name}:", f"{texts.template.path}:")
        if problem.line > texts.template.text.count("\n") + 1:
            return ConfigError(texts.stub_domains.path, 0, text)
        return ConfigError(texts.template.path, problem.line, text)


def _read(path: str) -> FileText:
    """The file as read. `text` is None if it or its directory is missing (ConfigMaps and their keys are optional).

    Any other error is in `problem`; raises nothing.
    """
    try:
        return FileText(path, read_text(path))
    except FileNotFoundError:
        return FileText(path)
    except (OSError, ValueError) as problem:
        return FileText(path, problem=f"cannot be read: {reason(problem)}")
