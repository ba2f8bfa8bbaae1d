"""The `prometheus` directive: the address that metrics are served on, and its TLS."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from topodns.corefile.arguments import Address, fold_options, listen_address, once_each, only_arg
from topodns.corefile.errors import listed, shown
from topodns.corefile.files import read_text, reason
from topodns.corefile.parser import Directive
from topodns.plugins.compatibility import same, unsupported
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin

if TYPE_CHECKING:
    from topodns.plugins.tls import Tls

DEFAULT_LISTEN: Final = Address("localhost", 9153)

_CLIENT_AUTHS: Final = {  # of Prometheus' exporter-toolkit, to the words of the directive `tls`
    "NoClientCert": "nocert",
    "RequestClientCert": "nocert",
    "VerifyClientCertIfGiven": "verify_if_given",
    "RequireAndVerifyClientCert": "require_and_verify",
}
_FILES: Final = ("cert_file", "key_file", "client_ca_file")
_SECTION: Final = "tls_server_config"


@dataclass(frozen=True, slots=True)
class Prometheus:
    listen: Address = DEFAULT_LISTEN
    tls: "Tls | None" = None  # None: HTTP


def parse_prometheus(directive: Directive, context: Context) -> Prometheus:
    prometheus = Prometheus(listen_address(directive, Prometheus().listen))
    once_each(directive)

    def tls(option: Directive, settings: Prometheus) -> Prometheus:
        path = context.readable_file(option, only_arg(option, "a file of Prometheus' web configuration"))
        return replace(settings, tls=_web_tls(option, path))

    return fold_options(directive, prometheus, {"tls": tls}, elsewhere=("runtime_metrics",))


def _web_tls(option: Directive, path: str) -> "Tls":
    """The settings in a web configuration file, whose paths are relative to it. Raises ConfigError."""
    # Imported here, as few servers have metrics over TLS.
    from topodns.net.tls_server import ClientAuth
    from topodns.plugins.tls import Tls, loaded

    config = _web_config(option, path)
    unknown = sorted(map(str, config.keys() - {*_FILES, "client_auth_type"}))
    if unknown:
        expected = listed((*_FILES, "client_auth_type"))
        raise option.error(f"{shown(path)} has {shown(unknown[0])} in {_SECTION}, expected {expected}")
    if not config.get("cert_file") or not config.get("key_file"):
        raise option.error(f"{shown(path)} has no cert_file or no key_file in {_SECTION}, expected both")
    word = str(config.get("client_auth_type", "NoClientCert"))
    if word not in _CLIENT_AUTHS:
        raise option.error(f"{shown(path)} has client_auth_type {shown(word)}, expected {listed(_CLIENT_AUTHS)}")
    files = (config.get(name) for name in _FILES)
    certificate, key, ca = (os.path.join(os.path.dirname(path), str(file)) if file else "" for file in files)
    return loaded(option, Tls(certificate, key, ca, ClientAuth(_CLIENT_AUTHS[word])))


def _web_config(option: Directive, path: str) -> Mapping[str, Any]:
    """The section `tls_server_config`, which must be the only one: others ask for what topodns does not do."""
    from topodns.kube.manifests.value import BadManifest
    from topodns.kube.manifests.yaml_reader import read_yaml

    try:
        read = read_yaml(read_text(path), path, lambda line, remark: None)
        documents = [each.content for each in read if each is not None]
    except (OSError, ValueError) as problem:
        raise option.error(f"cannot read {shown(path)}: {reason(problem)}") from None
    except BadManifest as problem:
        raise option.error(f"cannot read {shown(path)}, line {problem.line}: {problem.problem}") from None
    match documents:
        case [{"tls_server_config": dict(section), **others}] if not others:
            return section
    raise option.error(f"{shown(path)} has other sections than {_SECTION}, or none, expected that one")


PLUGIN: Final = Plugin(
    name="prometheus",
    coredns=same(
        runtime_metrics=unsupported("take it out: there is no Go runtime; process_* metrics are always there"),
    ),
    parse=parse_prometheus,
    fast_path=FastPath.ABSENT,
)
