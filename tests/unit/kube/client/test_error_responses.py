"""The problem that a refusing response reports, from an API server or a proxy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodns.kube.client.error_responses import MAX_BODY, api_error

NOW = 1_596_758_400.0  # Fri, 07 Aug 2020 00:00:00 GMT


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (403, '{"kind":"Status","message":"pods is forbidden"}', "403: pods is forbidden"),
        (410, '{"kind":"Status","reason":"Expired","message":""}', "410: Expired"),
        (500, '{"kind":"Status"}', '500: {"kind":"Status"}'),
        (500, '{"kind":"Pod","message":"me"}', '500: {"kind":"Pod","message":"me"}'),
        (500, '{"kind":"Status","message":["a"]}', '500: {"kind":"Status","message":["a"]}'),
        (429, "Too many requests, please try again later.\n", "429: Too many requests, please try again later."),
        (502, "<html><body>Bad Gateway", "502: Bad Gateway"),
        (504, "", "504: Gateway Timeout"),
        (599, "", "599: refused without a reason"),
        (400, "one\r\ntwo\x1b[31m three\x00", r"400: one two\x1b[31m three\x00"),
        (400, "[" * 60_000, f"400: {'[' * 494}…"),
        (400, "é" * 495, f"400: {'é' * 495}"),
    ],
)
def test_the_text_is_the_status_object_s_or_the_proxy_s(status: int, body: str, text: str) -> None:
    assert str(api_error(status, "", body.encode(), NOW)) == text


@pytest.mark.parametrize(
    ("header", "body", "seconds"),
    [
        ("", "", None),
        ("0", "", 0.0),
        ("1", "", 1.0),
        (" 120 ", "", 120.0),
        ("Fri, 07 Aug 2020 00:00:30 GMT", "", 30.0),
        ("Thu, 06 Aug 2020 23:59:59 GMT", "", 0.0),
        ("-1", "", None),
        ("1.5", "", None),
        ("soon", "", None),
        ("9" * 40, "", None),
        ("", '{"kind":"Status","details":{"retryAfterSeconds":3}}', 3.0),
        ("", '{"kind":"Status","details":{"retryAfterSeconds":0}}', None),
        ("", '{"kind":"Status","details":{"retryAfterSeconds":1e999}}', None),
        ("", '{"kind":"Status","details":[]}', None),
        ("2", '{"kind":"Status","details":{"retryAfterSeconds":3}}', 2.0),
    ],
)
def test_how_long_to_wait_is_said_by_the_header_or_by_the_status_object(
    header: str, body: str, seconds: float | None
) -> None:
    assert api_error(429, header, body.encode(), NOW).retry_after == seconds


@given(st.integers(300, 599), st.text(max_size=40), st.binary(max_size=200))
def test_any_response_is_one_short_line(status: int, header: str, body: bytes) -> None:
    found = api_error(status, header, body, NOW)
    assert found.status == status
    assert str(found).isprintable()
    assert len(str(found)) <= 500
    assert found.retry_after is None or found.retry_after >= 0


def test_a_long_body_is_looked_at_no_further_than_it_is_shown() -> None:
    assert len(str(api_error(500, "", b"x" * MAX_BODY, NOW))) == 500
