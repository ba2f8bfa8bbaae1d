"""Upstreams of `forward`, opened at the first query; TLS contexts are created when the Corefile is read."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from topodns.corefile.errors import ConfigError, shown
from topodns.net.upstream.address import UpstreamLimits, failure_of
from topodns.net.upstream.client import Connections, DnsUpstream, open_upstream
from topodns.net.upstream.udp_transport import UdpSockets
from topodns.plugins.forward.settings import Forward, UpstreamAddress, UpstreamTransport
from topodns.query.upstream import Carrier, Transport, UpstreamQuery

if TYPE_CHECKING:
    from topodns.net.upstream.dso_session import SessionUser

LINGER: Final = 10.0  # seconds: twice the time for which a query is retried, since autopath and dns64 send two in a row
UPSTREAM_DEFAULTS: Final = UpstreamLimits()


class LazyUpstream:
    """An `Upstream` that is opened at its first query, when the event loop exists."""

    def __init__(self, settings: Forward, address: UpstreamAddress, counts: Connections, sockets: UdpSockets) -> None:
        self.name = address.name
        self._settings = settings
        self._address = address
        self._counts = counts
        self._sockets = sockets
        # Created now, so that an unreadable certificate is an error of the Corefile.
        self._tls = _tls_context(settings) if address.transport is not UpstreamTransport.DNS else None
        self.opened: DnsUpstream | None = None
        self.carriers: Mapping[Transport, Carrier] = {}  # once opened

    def exchange(self, query: UpstreamQuery, transport: Transport, timeout: float, now: float) -> None:
        """As `Upstream.exchange`; a Failure at once while the address has an interface that does not exist here."""
        try:
            opened = self.opened or self._open()
        except OSError as problem:
            query.on_reply(failure_of(problem))
        else:
            opened.exchange(query, transport, timeout, now)

    def begin_session(self, user: "SessionUser") -> bool:
        """Begin a DSO session over TCP or TLS, as `TcpCarrier.begin_session`."""
        try:
            opened = self.opened or self._open()
        except OSError:
            return False
        return opened.begin_session(user)

    def close(self) -> None:
        """Close after LINGER seconds: queries in flight may still need this upstream, even for the first time."""
        asyncio.get_running_loop().call_later(LINGER, self._close)

    def _close(self) -> None:
        self.carriers = {}
        if self.opened is not None:
            self.opened.close()

    def _open(self) -> DnsUpstream:
        settings, address = self._settings, self._address
        self.opened = open_upstream(
            asyncio.get_running_loop(),
            address.host,
            address.port,
            tls=self._tls,
            server_name=address.server_name,
            https=settings.doh_method.value if address.transport is UpstreamTransport.HTTPS else "",
            source_address=settings.source_address,
            limits=UpstreamLimits(
                expire=settings.expire,
                max_age=UPSTREAM_DEFAULTS.max_age if settings.max_age is None else settings.max_age,
                max_idle_conns=settings.max_idle_conns,
                udp_patience=0.0 if settings.hedges else UPSTREAM_DEFAULTS.udp_patience,
            ),
            counts=self._counts,
            sockets=self._sockets,
        )
        self.carriers = self.opened.carriers
        return self.opened


def _tls_context(settings: Forward) -> ssl.SSLContext:
    """The context of the files of `tls`. Raises ConfigError."""
    # Imported here, as most upstreams are without TLS.
    from topodns.net.tls_client import client_context, why_unusable

    tls = settings.tls
    try:
        return client_context(tls.ca, tls.certificate, tls.key)
    except OSError as problem:
        files = ", ".join(map(shown, filter(None, (tls.certificate, tls.key, tls.ca))))
        why = why_unusable(problem, "PEM files of a certificate and its key, or of a CA")
        raise ConfigError(settings.file, settings.line, f"'forward' cannot use {files}: {why}") from None
