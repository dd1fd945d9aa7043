"""The import is lean, missing extras say so, and no folder imports from a later one."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import ftbc

from .conftest import RunPython

SOURCE = Path(ftbc.__file__).parent
NEEDED = {"torch", "numpy", "safetensors"}

# The way of the data. A folder imports from folders before it; those of one row know nothing of each other.
ORDER = [
    {"activation"},
    {"graph"},
    {"neuron"},
    {"threshold", "initial"},
    {"simulate"},
    {"calibrate"},
    {"measure"},
    {"protocol"},
    {"report"},
    {"export"},
    {"search"},
    {"reproduce"},
    {"cli"},
]
# Beside the way: each with all that it may import, apart from the modules of the package itself.
BESIDE = {"data": set(), "zoo": {"activation"}, "train": {"activation", "graph", "threshold", "data", "zoo"}}

# Imported only by a neighbour that does without it when its package is missing.
ON_DEMAND = {
    Path("calibrate/compiled.py"): {"numba"},
    Path("neuron/block.py"): {"numba", "llvmlite"},
    Path("neuron/compiled.py"): {"numba"},
    Path("neuron/compiled_kinds.py"): {"numba"},
    Path("simulate/event/firing.py"): {"numba"},
    Path("simulate/event/kernel.py"): {"numba"},
    Path("simulate/event/packed.py"): {"numba"},
    Path("simulate/event/vector.py"): {"numba", "llvmlite"},
    Path("vectors.py"): {"numba", "llvmlite"},
}

BLOCK = """if True:
    import sys

    class WithoutExtras:
        def __init__(self, finder):
            self.finder = finder

        def __getattr__(self, name):
            return getattr(self.finder, name)

        def find_spec(self, name, path=None, target=None):
            return None if name.partition(".")[0] in {blocked!r} else self.finder.find_spec(name, path, target)

    sys.meta_path[:] = [WithoutExtras(finder) for finder in sys.meta_path]
"""
EXTRAS = ["typer", "click", "rich", "matplotlib", "PIL", "pydantic", "hypothesis", "pytest", "kornia", "nir", "onnx",
          "onnxscript", "onnxruntime", "optuna", "torchvision", "timm", "scipy", "pandas", "numba", "tqdm",
          "yaml"]  # fmt: skip


def blocking(*packages: str) -> str:
    return BLOCK.format(blocked=set(packages))


# ---- lean ------------------------------------------------------------------------------------------------


def test_works_with_nothing_but_what_it_needs(run_python: RunPython) -> None:
    code = """
    import ftbc, torch
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    x = torch.rand(8, 4)
    snn = ftbc.convert(model, x, 2)
    snn.save("net.snn")
    assert torch.equal(ftbc.load("net.snn")(x), snn(x))
    assert ftbc.check(model, x).ok and ftbc.data.load("cifar10-sample", calibration=8, test=10)
    print(ftbc.evaluate(snn, (x, torch.zeros(8, dtype=torch.long))).images)
    """
    result = run_python(blocking(*EXTRAS) + code)
    assert result.stdout == "8\n" and not result.stderr


def test_imports_silently_and_nothing_that_torch_and_numpy_do_not(run_python: RunPython) -> None:
    code = """if True:
        import sys
        import torch, numpy, safetensors.torch
        before = set(sys.modules)
        import ftbc, ftbc.train, ftbc.report.plot
        added = set(sys.modules) - before
        print(*{name.partition(".")[0] for name in added})
    """
    result = run_python(code)
    added = set(result.stdout.split()) - set(sys.stdlib_module_names)
    assert "ftbc" in added and added <= {"ftbc", *NEEDED}, added
    assert result.stdout.count("\n") == 1 and result.stderr == ""


def test_every_public_name_is_there() -> None:
    assert all(hasattr(ftbc, name) for name in ftbc.__all__) and len(ftbc.__all__) == len(set(ftbc.__all__))


# ---- missing extras --------------------------------------------------------------------------------------


def test_the_command_line_names_its_extra(run_python: RunPython) -> None:
    result = run_python(blocking("typer", "rich", "click") + "    from ftbc.cli import main; main()", "methods")
    assert result.returncode == 2 and not result.stdout
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("ftbc: ")
    assert "'typer'" in result.stderr and "pip install 'ftbc[cli]'" in result.stderr


def test_what_needs_an_extra_names_it(run_python: RunPython) -> None:
    code = """
    from pathlib import Path
    from ftbc.data import read_image_folder
    from ftbc.errors import MissingExtraError
    from ftbc.report.plot import accuracy_curves
    Path("train/a").mkdir(parents=True)
    Path("train/a/x.JPEG").write_bytes(b"")
    for use in (
        lambda: accuracy_curves("x.png", [1, 2], {"a": [1, 2]}, 3, "title"),
        lambda: read_image_folder(".", "train"),
    ):
        try:
            use()
        except MissingExtraError as error:
            print(error)
    """
    result = run_python(blocking("matplotlib", "PIL") + code)
    drawing, reading = result.stdout.splitlines()
    assert "'matplotlib'" in drawing and "pip install 'ftbc[report]'" in drawing
    assert "'pillow'" in reading and "pip install 'ftbc[images]'" in reading


# ---- layers ----------------------------------------------------------------------------------------------


def imports(path: Path) -> set[str]:
    """Dotted names of what a file imports, with each name of ``from package import name`` as a candidate."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


FILES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
FOLDERS = {path.parts[0] for path in FILES if len(path.parts) > 1}


def test_every_folder_has_a_place() -> None:
    assert {"graph", "neuron", "calibrate", "cli"} <= FOLDERS <= set().union(*ORDER, BESIDE)


@pytest.mark.parametrize("path", [path for path in FILES if len(path.parts) > 1], ids=str)
def test_no_folder_imports_from_a_later_one(path: Path) -> None:
    folder = path.parts[0]
    rows = [row for row in ORDER if folder in row]
    allowed = {folder} | BESIDE.get(folder, set())
    for row in ORDER[: ORDER.index(rows[0])] if rows else []:
        allowed |= row
    if folder in ("measure", "protocol", "report", "export", "search", "reproduce", "cli"):
        allowed |= set(BESIDE)
    for name in imports(SOURCE / path):
        parts = name.split(".")
        if parts[0] == "ftbc" and len(parts) > 1 and parts[1] in FOLDERS:
            assert parts[1] in allowed, f"{path} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=str)
def test_only_needed_packages_are_imported_at_the_top(path: Path) -> None:
    if path.parts[0] == "cli":
        return
    tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
    for node in tree.body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            package = name.partition(".")[0]
            known = NEEDED | {"ftbc"} | set(sys.stdlib_module_names) | ON_DEMAND.get(path, set())
            assert package in known, f"{path} imports {name} at the top"


@pytest.mark.parametrize("path", [path for path in FILES if path.parts[0] != "cli"], ids=str)
def test_the_library_never_prints(path: Path) -> None:
    for node in ast.walk(ast.parse((SOURCE / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name not in ("print", "pprint", "sys.stdout.write", "sys.stderr.write", "breakpoint"), (
                f"{path}: {name}"
            )
