"""Networks from files of `torch.export`: programs that run without the code they were written in."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch
from torch import nn

from ftbc.atomic import is_file
from ftbc.errors import FileError, ModelError, first_line

ENDING = ".pt2"


def read_program(path: str | Path) -> nn.Module:
    """The network of a file that `torch.export.save` wrote; it must take one tensor, with any number of images.

    As with `torch.load`, open only files that you trust.
    """
    path = Path(path)
    if not is_file(path):
        raise FileError(f"'{path}' does not exist or is not a file: give a program that torch.export.save wrote")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.load(path)
    except Exception as error:  # of zip, of the schema, or of torch for operations that it lacks
        raise FileError(
            f"'{path}' cannot be read as a torch.export program ({first_line(error)}): save it again with this torch"
        ) from error
    wanted = [node.meta["val"] for node in program.graph.nodes if node.name in program.graph_signature.user_inputs]
    if len(wanted) != 1 or not isinstance(wanted[0], torch.Tensor):
        raise ModelError(f"'{path}' takes {len(wanted)} inputs: export a network that takes one tensor of images")
    if not isinstance(wanted[0].shape[0], torch.SymInt):
        raise ModelError(
            f"'{path}' takes exactly {wanted[0].shape[0]} images: export it with "
            "dynamic_shapes=({0: torch.export.Dim.DYNAMIC},), for any number of them"
        )
    return program.module()
