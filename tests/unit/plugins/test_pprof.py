"""The address and the rates of `pprof`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.corefile.arguments import Address


def test_pprof_has_an_address_and_takes_the_rate_of_coredns() -> None:
    assert only_block("pprof :6060 {\nblock 10\n}").settings.get("pprof") == Address("", 6060)
    assert only_block("pprof").settings.get("pprof") == Address("localhost", 6053)


@pytest.mark.parametrize(
    ("directive", "problem"),
    [
        ("pprof 6053", "'pprof' has the arguments '6053', expected one address HOST:PORT or :PORT at most"),
        ("pprof {\nblock often\n}", "'block' has 'often', expected a whole number from 0 to 2147483647"),
    ],
)
def test_what_cannot_be_meant_is_refused(directive: str, problem: str) -> None:
    assert problem in block_problem(directive)
