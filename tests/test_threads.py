"""Images shared out to threads: all of them once, in order, and torch as the user set it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

from ftbc.threads import over_images


@pytest.fixture
def three_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(threads)


def test_every_image_once_and_in_order(three_threads: None) -> None:
    assert over_images(lambda first, last: (first, last), 10, worth=9) == [(0, 3), (3, 6), (6, 10)]
    assert over_images(lambda first, last: (first, last), 2, worth=9) == [(0, 1), (1, 2)]
    assert over_images(lambda first, last: (first, last), 10, worth=1) == [(0, 10)]


def test_torch_works_alone_in_each_thread_and_as_before_elsewhere(three_threads: None) -> None:
    def look(_: int, __: int) -> tuple[int, bool, bool]:
        here = threading.current_thread() is threading.main_thread()
        return torch.get_num_threads(), torch.is_grad_enabled(), here

    for _ in range(2):
        assert over_images(look, 3, worth=3) == [(1, False, False)] * 3
        assert torch.get_num_threads() == 3 and torch.is_grad_enabled()
    seen: list[int] = []
    other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    other.start()
    other.join()
    assert seen == [3], "a thread of the user's that begins later"


def test_what_goes_wrong_in_a_thread_is_told(three_threads: None) -> None:
    def fail(first: int, _: int) -> None:
        if first:
            raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        over_images(fail, 3, worth=3)


def test_what_is_shared_out_is_not_shared_out_again(three_threads: None) -> None:
    def again(first: int, last: int) -> list[tuple[int, int]]:
        torch.set_num_threads(3)  # as where torch cannot be told to work in one thread alone
        try:
            return over_images(lambda *part: part, last - first, worth=9)
        finally:
            torch.set_num_threads(1)

    assert over_images(again, 9, worth=3) == [[(0, 3)]] * 3
