"""The octets that make a question plain."""

import pytest

from tests.support.dns_messages import DO, RD, Opt, query
from topodns.dns.message import Flag
from topodns.dnsserver.plain_question import HEADS, OPT_BEGIN, OPT_ENDS

NAME_END = 12 + len(b"\3www\7example\0") + 4


@pytest.mark.parametrize("flags", [0, RD, RD | Flag.AD, RD | Flag.CD, Flag.AD | Flag.CD])
@pytest.mark.parametrize("opt", [None, Opt()])
def test_the_header_of_a_plain_question_gives_its_flags_and_the_number_of_opt_records(
    flags: int, opt: Opt | None
) -> None:
    assert HEADS[query("www.example. A", opt, flags)[2:12]] == (flags, int(opt is not None))


@pytest.mark.parametrize("flags", [Flag.QR, Flag.AA, Flag.TC, Flag.RA, 0x40, 0x0800])
def test_any_other_flag_opcode_or_number_of_records_is_not_plain(flags: int) -> None:
    header = query("www.example. A", flags=flags)[2:12]
    assert header not in HEADS
    assert query("www.example. A")[2:11] + b"\2" not in HEADS


@pytest.mark.parametrize(("opt", "bit"), [(Opt(), 0), (Opt(size=4096), 0), (Opt(flags=DO), DO)])
def test_an_opt_record_without_options_is_plain(opt: Opt, bit: int) -> None:
    octets = query("www.example. A", opt)[NAME_END:]
    assert (octets[:3], OPT_ENDS[octets[5:]]) == (OPT_BEGIN, bit)


@pytest.mark.parametrize("opt", [Opt(version=1), Opt(options=((10, bytes(8)),)), Opt(flags=1)])
def test_an_opt_record_with_another_version_a_flag_or_an_option_is_not_plain(opt: Opt) -> None:
    assert query("www.example. A", opt)[NAME_END + 5 :] not in OPT_ENDS
