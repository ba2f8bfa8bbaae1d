"""The identity of a server over TLS, as `forward` verifies it (RFC 9525); the API client: test_kube_api_login.py."""

from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.certificates import SERVER_NAME, Certificates, make_certificates, needs_openssl
from tests.support.event_loops import either_loop
from tests.support.faulty_upstream import ANSWER, bad_upstream
from tests.support.scripted_http_server import server_side
from tests.support.upstream_faults import answers
from tests.support.upstream_queries import TLS, addresses, ask, result
from topodns.corefile.errors import ConfigError
from topodns.net.upstream.address import Counts
from topodns.net.upstream.udp_transport import UdpSockets
from topodns.plugins.forward.lazy_upstream import LazyUpstream
from topodns.plugins.forward.settings import Forward, ForwardTls, UpstreamAddress, UpstreamTransport
from topodns.query.upstream import Failure

pytestmark = [either_loop, needs_openssl]
UNNAMED = range(6)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def upstream(port: int, server_name: str, ca: Path) -> LazyUpstream:
    address = UpstreamAddress("127.0.0.1", port, UpstreamTransport.TLS, server_name)
    return LazyUpstream(
        Forward(((),), (address,), tls=ForwardTls(ca=str(ca))), address, defaultdict(Counts), UdpSockets()
    )


@pytest.mark.parametrize("number", UNNAMED)
async def test_an_upstream_is_never_identified_by_its_common_name(
    loop_name: str, certificates: Certificates, number: int
) -> None:
    pair = certificates.unnamed[number]
    with bad_upstream(answers, context=server_side(certificates, server=pair)) as server:
        asked = upstream(server.port, pair.common_name, certificates.ca)
        failure = await result(ask(asked, TLS))
        assert isinstance(failure, Failure)
        assert failure.problem.startswith("certificate not accepted: ")
        assert server.asked == []
        asked.close()


@pytest.mark.parametrize("server_name", [SERVER_NAME, "", "127.0.0.1"])
async def test_an_upstream_is_identified_by_its_subject_alternative_name(
    loop_name: str, certificates: Certificates, server_name: str
) -> None:
    with bad_upstream(answers, context=server_side(certificates)) as server:
        asked = upstream(server.port, server_name, certificates.ca)
        assert await addresses(ask(asked, TLS)) == [ANSWER]
        asked.close()


@pytest.mark.parametrize("word", [b"nonsense", b"B\xfcro"])
async def test_a_certificate_of_the_ca_file_that_cannot_be_read_costs_no_other(
    loop_name: str, certificates: Certificates, tmp_path: Path, word: bytes
) -> None:
    ca = tmp_path / "ca.pem"
    unreadable = b"-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n" % word
    ca.write_bytes(unreadable + certificates.ca.read_bytes() + unreadable)
    with bad_upstream(answers, context=server_side(certificates)) as server:
        asked = upstream(server.port, SERVER_NAME, ca)
        assert await addresses(ask(asked, TLS)) == [ANSWER]
        asked.close()


@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"])
async def test_a_ca_file_without_a_certificate_is_refused_by_its_name(
    loop_name: str, tmp_path: Path, text: str
) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text(text)
    with pytest.raises(ConfigError, match=rf"'forward' cannot use '{ca}': .*: expected PEM files of a certificate"):
        upstream(853, SERVER_NAME, ca)
