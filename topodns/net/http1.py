"""HTTP/1.1 messages by h11, for the server of metrics and probes, and for upstreams. The only importer of h11."""

from h11 import (
    CLIENT,
    DONE,
    IDLE,
    NEED_DATA,
    PAUSED,
    SEND_RESPONSE,
    SERVER,
    Connection,
    Data,
    EndOfMessage,
    RemoteProtocolError,
    Request,
    Response,
)

__all__ = [
    "CLIENT",
    "DONE",
    "IDLE",
    "NEED_DATA",
    "PAUSED",
    "SEND_RESPONSE",
    "SERVER",
    "Connection",
    "Data",
    "EndOfMessage",
    "RemoteProtocolError",
    "Request",
    "Response",
]
