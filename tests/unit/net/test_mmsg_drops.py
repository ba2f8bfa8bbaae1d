"""Which datagrams are dropped, which replies are given up, and how they are counted."""

import errno
from socket import MSG_CTRUNC, MSG_TRUNC

import pytest

from topodns.net.mmsg import DatagramCounts, drop_oversize, drop_port_zero, drop_replies


def test_a_truncated_datagram_is_dropped_and_the_others_keep_their_sizes() -> None:
    counts, sizes = DatagramCounts(), [40, 4096, 50, 4096]
    drop_oversize(counts, sizes, [0, MSG_TRUNC, MSG_CTRUNC, MSG_TRUNC | MSG_CTRUNC])
    assert sizes == [40, 0, 50, 0]
    assert counts == DatagramCounts(dropped_oversize=2)


def test_a_datagram_from_port_zero_is_dropped() -> None:
    counts, sizes = DatagramCounts(), [40, 41, 42]
    drop_port_zero(counts, sizes, [1, 0, 65535])
    assert sizes == [40, 0, 42]
    assert counts == DatagramCounts(dropped_port_zero=1)


@pytest.mark.parametrize("error", [errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM])
def test_all_waiting_replies_are_dropped_if_the_send_buffer_is_full(error: int) -> None:
    counts = DatagramCounts()
    assert drop_replies(counts, error, 7) == 7
    assert counts == DatagramCounts(dropped_full=7)


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENETUNREACH, errno.EINVAL, None])
def test_only_the_refused_reply_is_dropped_for_any_other_reason(error: int | None) -> None:
    counts = DatagramCounts()
    assert drop_replies(counts, error, 7) == 1
    assert counts == DatagramCounts(failed_sends=1)
