"""The state of a lab at the moment, as a table."""

from tests.kubelab import control_plane
from tests.kubelab.lab import Lab
from tests.kubelab.machine import rss_kib
from tests.kubelab.options import API, API6

_WORDS = {True: "Ready", False: "NotReady", None: "no Node"}
_TITLES = ("MACHINE", "STATE", "ZONE", "ADDRESS", "POD CIDR", "PID", "RSS MiB")


def status(lab: Lab) -> str:
    rows = _rows(lab)
    widths = [max(map(len, column)) for column in zip(_TITLES, *rows, strict=True)]
    lines = [
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (_TITLES, *rows)
    ]
    options = lab.options
    return "\n".join(
        [
            *lines,
            f"{lab.name}: kube-proxy {options.proxy_mode}, cluster DNS {options.cluster_dns}, "
            f"API https://127.0.0.1:{lab.facts['port']}, {sum(int(row[-1]) for row in rows)} MiB RSS",
        ]
    )


def _rows(lab: Lab) -> list[tuple[str, ...]]:
    ready, families = lab.ready(), lab.options.families
    places = {control_plane.NAME: ("up", "", families((API, API6)), [""])}
    for node in lab.options.nodes:
        place = f"{node.region}/{node.topology_zone}"
        places[node.name] = (_WORDS[ready.get(node.name)], place, families(node.ips), families(node.pod_cidrs))
    rows: list[tuple[str, ...]] = []
    for name, (state, place, addresses, cidrs) in places.items():
        machine = lab.machines[name]
        memory = sum(map(rss_kib, machine.pids)) // 1024
        shown = state if machine.pid else "down"
        rows.append((name, shown, place, ",".join(addresses), ",".join(cidrs), str(machine.pid or ""), str(memory)))
    return rows
