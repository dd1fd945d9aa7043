"""Real teams for tests: processes that are forked from one that has imported everything, and talk by gloo."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing import connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from ftbc.errors import FtbcError
from ftbc.processes import Team

_WAIT = 200.0


def in_team(size: int, work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What ``work(team, *arguments)`` returns, or which error for the user it raises, in each of several processes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.warm", "tests.team"])
    with tempfile.TemporaryDirectory() as folder:
        task = pickle.dumps((work, arguments))
        pipes = [context.Pipe(duplex=False) for _ in range(size)]
        members = [
            context.Process(target=_run, args=(rank, size, f"{folder}/store", task, pipe[1]), daemon=True)
            for rank, pipe in enumerate(pipes)
        ]
        for member in members:
            member.start()
        try:
            return _answers([pipe[0] for pipe in pipes])
        finally:
            for member in members:
                member.kill()
                member.join()


def _answers(pipes: list[Any]) -> list[Any]:
    """What all processes say; a fault of one is raised at once, for the others may wait for it."""
    found: dict[Any, Any] = {}
    until = time.monotonic() + _WAIT
    while len(found) < len(pipes):
        ready = connection.wait([pipe for pipe in pipes if pipe not in found], until - time.monotonic())
        assert ready, f"{len(pipes) - len(found)} processes have no answer"
        for pipe in ready:
            found[pipe] = pickle.loads(pipe.recv_bytes())  # type: ignore[union-attr]
            if isinstance(found[pipe], Exception) and not isinstance(found[pipe], FtbcError):
                raise found[pipe]
    return [found[pipe] for pipe in pipes]


def _run(rank: int, size: int, store: str, task: bytes, answer: Any) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    work, arguments = pickle.loads(task)
    try:
        result = work(Team(rank, size), *arguments)
    except Exception as error:
        error.add_note(traceback.format_exc())
        result = error
    answer.send_bytes(pickle.dumps(result))
    time.sleep(_WAIT)  # others may still talk with this one; all are ended together


def torchrun(size: int, *arguments: object, folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Start a module in several processes."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size), "-m"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command, *map(str, arguments)], cwd=folder, env=environment, **pipes)
