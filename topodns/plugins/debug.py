"""The `debug` directive: more log lines, and upstreams by name in extended DNS errors."""

from typing import Final

from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.plugin import FastPath, Plugin, parse_flag

PLUGIN: Final = Plugin(
    name="debug",
    coredns=differs(
        Effect.ANSWER,
        "the log says more, and extended errors name upstreams; a bug in one query never ends the process",
    ),
    parse=parse_flag,
    in_chain=False,
    fast_path=FastPath.ABSENT,
)
