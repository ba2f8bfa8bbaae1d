"""CoreDNS's directive `multisocket`: the number of processes that share the ports of the Corefile."""

import os
from contextlib import suppress
from typing import Final

from topodns.corefile.arguments import no_body, only_arg, whole
from topodns.corefile.parser import Directive
from topodns.plugins.block import Settings
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin

_MAX_SOCKETS: Final = 1024  # CoreDNS's limit
_CPU_QUOTA: Final = "/sys/fs/cgroup/cpu.max"  # of cgroup v2: "QUOTA PERIOD" in microseconds, QUOTA may be "max"


def parse_multisocket(directive: Directive, context: Context, cpus: int | None = None) -> int:
    """`multisocket [NUM_SOCKETS]`: the number requested, 1..1024, or 0 if there is none: one for each CPU.

    Warns of more processes than there are CPUs; `cpus`: as in `process_count`. Raises ConfigError.
    """
    no_body(directive)
    if not directive.args:
        return 0
    number = whole(directive, only_arg(directive, "one number at most"), 1, _MAX_SOCKETS)
    most = usable_cpus() if cpus is None else cpus
    if number > most:
        available = f"{most} CPU{'' if most == 1 else 's'}"
        excess = f"{number} processes on {available}: more memory, no more speed"
        context.warn(f"plugin/multisocket: {excess} ({directive.place})")
    return number


def process_count(settings: Settings, cpus: int | None = None) -> int:
    """The number of processes that serve these settings: the largest of all blocks, 1 without the directive.

    `cpus`: None for those of this machine that the process may use.
    """
    numbers = [number for block in settings.blocks if (number := PLUGIN.settings_of(block)) is not None]
    if 0 in numbers:
        numbers.append(usable_cpus() if cpus is None else cpus)
    return max(numbers, default=1) or 1


def usable_cpus(quota_file: str = _CPU_QUOTA) -> int:
    """The CPUs that this process may use, at least 1: by its affinity, and by the quota of its cgroup, rounded up."""
    usable = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError), open(quota_file, encoding="ascii") as file:
        quota, period = file.read().split()
        usable = min(usable, -(-int(quota) // int(period)))
    return max(1, usable)


PLUGIN: Final = Plugin(
    name="multisocket",
    coredns=differs(
        Effect.BOUNDS, "a process for each, with caches and limits of its own; the largest number of all blocks counts"
    ),
    parse=parse_multisocket,
    in_chain=False,
    fast_path=FastPath.ABSENT,
)
