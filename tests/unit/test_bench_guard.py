"""`make bench-guard`: a path that takes more calls than its figure fails it."""

import json
from pathlib import Path

import pytest

from bench.guard.__main__ import report
from bench.guard.counting import Calls
from bench.guard.figures import FIGURES, gains, problems, read_figures, write_figures
from bench.guard.paths import count_forwarding
from topodns.dnsserver.fast_forward.relay import Relay

FIGURE = {"hot": 4.0, "first": 100.0}


def counts() -> dict[str, float]:
    return {each.path: each.per_query for each in count_forwarding()}


def test_a_path_made_slower_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    before = counts()
    relay = Relay.__call__

    def slower(self: Relay, data: bytes, address: bytes, port: int, started: float) -> object:
        for _ in range(15):  # an eighth more calls
            data.lower()
        return relay(self, data, address, port, started)

    monkeypatch.setattr(Relay, "__call__", slower)
    after = counts()
    path = "server, forwarded over UDP: never asked"
    assert after[path] == pytest.approx(before[path] + 16, abs=1)
    more = f"{(after[path] / before[path] - 1) * 100:.0f}% more"
    assert f"{path}: {after[path]} calls, {more}; the figure is {before[path]}" in [*problems(after, before)]
    assert report(after, before) == 1


def test_calls_of_python_and_of_c_are_counted_and_a_type_is_not() -> None:
    def action() -> None:
        str(len(sorted([3, 1], key=abs)))  # `sorted` calls `abs` in C, which is no event

    calls = Calls()
    calls.count(action)
    assert calls.total == 3
    assert [number for _, number in calls.by_function()] == [1, 1, 1]
    assert {"len", "sorted"} < {function for function, _ in calls.by_function()}


def test_up_to_a_tenth_more_is_no_problem() -> None:
    assert list(problems({"hot": 4.4, "first": 100}, FIGURE)) == []
    assert list(problems({"hot": 4.41, "first": 110}, FIGURE)) == ["hot: 4.41 calls, 10% more; the figure is 4.0"]


def test_over_a_tenth_fewer_asks_for_a_new_figure_and_passes(capsys: pytest.CaptureFixture[str]) -> None:
    counted = {"hot": 4.0, "first": 80.0}
    line = "first: 80.0 calls, 20% fewer; renew the figure 100.0 with --write"
    assert list(gains(counted, FIGURE)) == [line]
    assert report(counted, FIGURE) == 0
    assert line in capsys.readouterr().out


def test_a_path_without_a_figure_and_a_figure_without_a_path_are_problems() -> None:
    assert list(problems({"hot": 4.0, "new": 7.0}, FIGURE)) == [
        "new: 7.0 calls, and no figure: add it with --write",
        "first: a figure, and no such path: remove it with --write",
    ]


def test_figures_are_renewed_for_one_version_of_python(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    write_figures("3.11", FIGURE, file)
    write_figures("3.13", {"hot": 3.0}, file)
    assert json.loads(file.read_text()) == {"3.11": FIGURE, "3.13": {"hot": 3.0}}
    assert read_figures("3.11", file) == FIGURE


def test_a_version_without_figures_is_said_and_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(FIGURE, {}) == 0
    assert "nothing to compare with" in capsys.readouterr().out


def test_the_python_of_the_image_has_figures_for_all_forwarding_paths() -> None:
    figures = read_figures("3.11", FIGURES)
    assert {each.path for each in count_forwarding()} < figures.keys()
