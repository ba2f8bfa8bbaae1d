"""Where the `kubernetes` directive takes the cluster from: `manifests`, or an API server.

Without a word about it, the API server of the Pod we run in.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from topodns.config.corefile import Directive
from topodns.config.directives.context import Context
from topodns.config.errors import shown
from topodns.config.values import no_body, only_arg, some_args, wrong
from topodns.settings.kubernetes import ApiSettings, KubernetesSettings

Reader = Callable[[Directive, KubernetesSettings], KubernetesSettings]

_URL: Final = "the URL of one API server, https://HOST[:PORT] or http://HOST[:PORT]"
_TLS_FILES: Final = 'the files of a client certificate, its key and a CA, "" for one that there is not'


def source_readers(context: Context) -> dict[str, Reader]:
    """The readers of the options. Files are found beside the Corefile, and have to be readable."""

    def manifests(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
        paths = some_args(option, "paths of files or directories")
        readable = tuple(context.readable_path(option, path) for path in paths)
        return replace(settings, manifests=settings.manifests + readable)

    def tls(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
        files = (context.readable_file(option, path) if path else "" for path in _tls_files(option))
        certificate, key, ca = files
        return replace(settings, api=replace(_api(settings), tls=(certificate, key, ca)))

    def kubeconfig(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
        file, chosen = _file_and_context(option)
        path = context.readable_file(option, file)
        return replace(settings, api=replace(_api(settings), kubeconfig=path, context=chosen, place=option.place))

    return {"manifests": manifests, "endpoint": _endpoint, "tls": tls, "kubeconfig": kubeconfig}


def with_source(directive: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    """The settings with exactly one source. Raises ConfigError where there are two, of which CoreDNS drops one."""
    api = _api(settings)
    given = {"manifests": settings.manifests, "kubeconfig": api.kubeconfig, "endpoint": api.endpoint}
    sources = [name for name, value in given.items() if value]
    if len(sources) > 1:
        raise directive.error(f"'kubernetes' has both '{sources[0]}' and '{sources[1]}', expected one of them")
    if api.tls is not None and not api.endpoint:
        raise directive.error("'kubernetes' has 'tls' without 'endpoint', which it is for")
    return settings if settings.manifests else replace(settings, api=replace(api, place=api.place or directive.place))


def _api(settings: KubernetesSettings) -> ApiSettings:
    return settings.api or ApiSettings()


def _endpoint(option: Directive, settings: KubernetesSettings) -> KubernetesSettings:
    url = only_arg(option, _URL)
    if not _is_server(url):
        raise option.error(f"'endpoint' has {shown(url)}, expected {_URL}")
    return replace(settings, api=replace(_api(settings), endpoint=url.rstrip("/")))


def _is_server(text: str) -> bool:
    try:
        url = urlsplit(text)
        port = url.port  # raises where it is no number
    except ValueError:
        return False
    bare = text.isascii() and not any(sign in text for sign in "?#@\\") and text.isprintable() and " " not in text
    return url.scheme in ("http", "https") and bool(url.hostname) and port != 0 and bare


def _tls_files(option: Directive) -> tuple[str, ...]:
    no_body(option)
    if len(option.args) != 3:
        raise wrong(option, _TLS_FILES)
    certificate, key, _ = option.args
    if bool(certificate) != bool(key):
        raise option.error("'tls' has one of certificate and key, expected both or none")
    return option.args


def _file_and_context(option: Directive) -> tuple[str, str]:
    """The context is "" where the file's current one is meant."""
    no_body(option)
    match option.args:
        case (file,):
            return file, ""
        case (file, chosen) if chosen:
            return file, chosen
    raise wrong(option, "a file and perhaps the name of a context")
