"""The interval and the jitter of `reload`, and the checks of the Corefile."""

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.corefile.errors import ConfigError
from topodns.plugins.reload import CorefileChecks, Reload


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", Reload(30.0, 15.0)),
        ("10s", Reload(10.0, 5.0)),  # the jitter is at most half the interval
        ("2m 10s", Reload(120.0, 10.0)),
        ("2s 0s", Reload(2.0, 0.0)),
        ("off", None),
    ],
)
def test_reload(arguments: str, expected: Reload | None) -> None:
    assert only_block(f"reload {arguments}").settings.get("reload") == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("1s", "'reload' has the interval 1s, expected at least 2s"),
        ("5s 500ms", "'reload' has the jitter 500ms, expected 0 or at least 1s"),
        ("5s 1s 1s", "'reload' has the arguments '5s 1s 1s', expected an interval and a jitter at most, or off"),
        ("5", "'reload' has '5', expected a duration such as 5s, 1m30s or 500ms"),
        ("often", "'reload' has 'often', expected a duration such as 5s, 1m30s or 500ms"),
    ],
)
def test_a_wrong_reload_is_refused(arguments: str, expected: str) -> None:
    assert block_problem(f"reload {arguments}") == f"Corefile:2: {expected}"


FAULTY = ConfigError("Corefile", 2, "unknown directive 'forwad'")
FAULTIER = ConfigError("Corefile", 3, "unknown directive 'forwrd'")


class Checks:
    """Checks of a Corefile that reads as `found` one after another; `active` is in force."""

    def __init__(self, found: Sequence[str | ConfigError], times: Reload, seed: int = 0) -> None:
        self.pauses: list[float] = []
        self.reported: list[str] = []  # "load DIGEST" or the problem, by check
        self._found, self._digest = iter(found), ""
        checks = CorefileChecks(self._read, self._load, self.reported.append, Random(seed), self._sleep)
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(checks.run(times, "active"))

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def _read(self) -> str:
        found = next(self._found, None)
        if found is None:
            raise asyncio.CancelledError
        if isinstance(found, ConfigError):
            raise found
        self._digest = found
        return found

    def _load(self) -> None:
        self.reported.append(f"load {self._digest}")


@pytest.mark.parametrize(
    ("found", "reported"),
    [
        (["active", "active"], []),
        (["new"], ["load new"]),
        (["new", "new", "new"], ["load new"]),  # loaded, and could not be served
        (["new", "newer", "new"], ["load new", "load newer", "load new"]),
        (["new", "active", "new"], ["load new", "load new"]),
        ([FAULTY, FAULTY], [str(FAULTY)]),
        ([FAULTY, FAULTIER], [str(FAULTY), str(FAULTIER)]),
        ([FAULTY, "active", FAULTY], [str(FAULTY), str(FAULTY)]),
        ([FAULTY, "new"], [str(FAULTY), "load new"]),
    ],
    ids=str,
)
def test_a_corefile_is_tried_and_refused_once_until_it_changes(
    found: list[str | ConfigError], reported: list[str]
) -> None:
    assert Checks(found, Reload()).reported == reported


def test_a_corefile_that_is_again_the_one_in_force_is_said_to_be_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    Checks(["active", FAULTY, "active", "active", "new", "active"], Reload())
    assert caplog.messages == ["plugin/reload: the Corefile is again the one in force"] * 2


@pytest.mark.parametrize(
    ("times", "least", "most"),
    [
        (Reload(30.0, 15.0), 22.5, 37.5),
        (Reload(10.0, 0.0), 10.0, 10.0),
        (Reload(2.0, 1.0), 1.5, 2.5),
        (Reload(1.0, 1.0), 1.0, 1.5),
    ],
)
def test_checks_are_an_interval_apart_give_or_take_half_the_jitter_and_at_least_a_second(
    times: Reload, least: float, most: float
) -> None:
    pauses = Checks(["active"] * 200, times).pauses
    assert len(pauses) == 201
    assert least <= min(pauses) <= max(pauses) <= most
    assert max(pauses) - min(pauses) >= 0.9 * (most - least)
