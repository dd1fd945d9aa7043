"""Timing: what is run in which order, and what is made of the seconds."""

from __future__ import annotations

from itertools import count

import pytest
import torch

from ftbc.errors import InputError
from ftbc.measure.machine import machine, threads
from ftbc.measure.timing import Spread, Timing, Way, fastest, interleaved, timed
from tests.conftest import Refused


def test_spread_is_median_and_extremes() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert Spread.of([4.0, 1.0]) == Spread(2.5, 1.0, 4.0)
    assert Spread(2.0, 1.0, 3.0) * 4 == Spread(8.0, 4.0, 12.0)
    assert Spread.from_dict(Spread(2.0, 1.0, 3.0).to_dict()) == Spread(2.0, 1.0, 3.0)


@pytest.mark.parametrize(
    ("value", "shown"), [(123.4, "123"), (12.34, "12.3"), (1.234, "1.23"), (0.1234, "0.12"), (0.01234, "0.012")]
)
def test_spread_shows_as_many_digits_as_are_worth_it(value: float, shown: str) -> None:
    assert str(Spread(value, value, value)) == f"{shown} ({shown}..{shown})"


def test_rates_and_ratios_go_round_by_round() -> None:
    slow, fast = Timing((2.0, 4.0, 8.0), items=2), Timing((1.0, 1.0, 2.0), items=4)
    assert slow.per_second == Spread(0.5, 0.25, 1.0)
    # Per item: slow takes 1, 2, 4 and fast 0.25, 0.25, 0.5 seconds, so that fast is 4, 8 and 8 times as fast.
    assert fast.speed_over(slow) == Spread(8.0, 4.0, 8.0)
    assert slow.speed_over(fast) == Spread(1 / 8, 1 / 8, 1 / 4)
    # A machine that is ten times as slow in one round changes no ratio.
    disturbed = [Timing((2.0, 40.0, 8.0), 2), Timing((1.0, 10.0, 2.0), 4)]
    assert disturbed[1].speed_over(disturbed[0]) == fast.speed_over(slow)


def test_ratios_need_the_same_rounds(refused: Refused) -> None:
    refused(InputError, "interleaved", Timing((1.0,)).speed_over, Timing((1.0, 2.0)))


def test_all_ways_run_in_turn_and_warm_up_first() -> None:
    ran: list[str] = []
    ways = {name: Way(lambda name=name: ran.append(name), items) for name, items in (("a", 1), ("b", 5), ("c", 1))}
    seconds = count(1)

    def clock(run) -> float:  # type: ignore[no-untyped-def]
        run()
        return float(next(seconds))

    seen: list[tuple[str, int, int]] = []
    timings = interleaved(ways, repeats=3, clock=clock, progress=lambda *entry: seen.append(entry), what="x")
    assert ran == ["a", "b", "c", "b", "c", "a", "c", "a", "b", "a", "b", "c"]
    # The first three are warm-up and do not count.
    assert timings == {
        "a": Timing((6.0, 8.0, 10.0), 1), "b": Timing((4.0, 9.0, 11.0), 5), "c": Timing((5.0, 7.0, 12.0), 1)
    }  # fmt: skip
    assert seen == [("x", done, 12) for done in range(1, 13)]


def test_the_clock_runs_while_the_work_does() -> None:
    assert timed(lambda: sum(range(100_000))) > timed(lambda: None) >= 0


def test_nothing_to_measure(refused: Refused) -> None:
    assert interleaved({}) == {}
    refused(InputError, "repeats=0", interleaved, {"a": Way(list)}, 0)


def test_the_fastest_has_the_most_items_a_second() -> None:
    timings = {"a": Timing((1.0,), 1), "b": Timing((2.0,), 6), "c": Timing((1.0,), 2)}
    assert fastest(timings) == ["b"] and fastest(timings, 2) == ["b", "c"] and fastest(timings, 9) == ["b", "c", "a"]


def test_machine_says_what_figures_depend_on() -> None:
    found = machine()
    assert found["cpu"] and found["cores"] >= 1 and found["system"]
    assert found["versions"]["torch"] == torch.__version__ and {"python", "ftbc", "numpy"} <= found["versions"].keys()


def test_machine_without_the_files_of_linux(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("ftbc.measure.machine._CPUINFO", tmp_path / "none")
    assert machine()["cpu"]
    (tmp_path / "none").write_text("processor : 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name : Another\n")
    assert machine()["cpu"] == "Some CPU @ 2 GHz"


def test_threads_come_back(refused: Refused) -> None:
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise ZeroDivisionError
    assert torch.get_num_threads() == before
    refused(InputError, "threads=0", threads(0).__enter__)
