"""Warning Events on Services whose topology keys are invalid, or stand where they can do nothing.

What to write when is decided in `plan`, which is pure, and spelled in `objects`; `lease` and `writer` wait for the API
server. Nobody waits for them.
"""

from topodns.edge.service_events.lease import NAMESPACE
from topodns.edge.service_events.writer import EventWriter

__all__ = ["NAMESPACE", "EventWriter"]
