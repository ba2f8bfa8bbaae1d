"""A resolver behind NAT at a loopback address, as Docker has at 127.0.0.11, and a server on all addresses."""

from pathlib import Path
from typing import Final

from tests.support import upstream_faults
from tests.support.faulty_upstream import ANSWER, bad_upstream
from tests.support.namespaced_node import namespace
from tests.support.server_process import serving

PORT: Final = 5353
COREFILE: Final = f"""
.:{PORT} {{
    loop
    forward . 127.0.0.11:{PORT}
}}
"""
NAT: Final = """
table ip resolver {{
    chain out {{
        type nat hook output priority -100
        ip daddr 127.0.0.11 udp dport 5353 dnat to 127.0.0.11:{port}
        ip daddr 127.0.0.11 tcp dport 5353 dnat to 127.0.0.11:{port}
    }}
}}
"""


def test_it_is_asked_and_a_warning_says_that_it_looks_like_the_server(tmp_path: Path) -> None:
    with (
        namespace("nat") as machine,
        machine.entered(),
        bad_upstream(upstream_faults.answers, "127.0.0.11") as resolver,
    ):
        machine.run("nft", "-f -", NAT.format(port=resolver.port))
        with serving(tmp_path, COREFILE, address="127.0.0.1", port=PORT) as server:
            line = server.wait_for_line("127.0.0.11:5353 may be this server block itself, a loop")
            assert line.startswith("[WARNING] plugin/forward: ")
            assert server.ask("other.test A").data == [ANSWER]
