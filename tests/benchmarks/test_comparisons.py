"""The tables of docs/comparison.md are made of results, and its claims are checked against them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("benchmarks", reason="not part of a source distribution")

from benchmarks import comparisons
from benchmarks.page import filled

ROOT = Path(__file__).parents[2]
HEAD = "recipe,steps,accuracy,ann_accuracy,test_images,calibration_images,levels,extra_steps,steppable"
ROWS = """
snnc-lp,1,20.0,90.0,10000,256,binary,0,True
snnc-lp,32,80.0,90.5,2000,256,binary,0,True
ftbc,1,10.0,90.0,10000,256,binary,0,True
ftbc,32,80.0,90.5,2000,256,binary,0,True
best,1,60.0,90.0,10000,1024,binary,0,True
best,32,79.0,90.5,2000,1024,binary,0,True
best,64,79.0,90.5,2000,1024,binary,0,True
ftbc,64,70.0,90.5,2000,256,binary,0,True
srp,32,89.0,90.5,2000,1024,binary,4,True
differential,1,75.0,90.0,10000,0,multi-level,0,True
tsc,1,,90.0,,,ternary,0,True
"""
REPRODUCED = """part,method,steps,here
VGG-16,QCFS,1,50.0
VGG-16,FTBC (+QCFS),1,60.0
VGG-16,QCFS,2,70.0
VGG-16,FTBC (+QCFS),2,70.0
VGG-16,FTBC (+QCFS),4,
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "resnet20.csv").write_text(HEAD + ROWS)
    (tmp_path / "cifar10.csv").write_text(REPRODUCED)
    return tmp_path


def test_tables_mark_what_can_be_compared(folder: Path) -> None:
    lines = comparisons.accuracies("resnet20", folder).splitlines()
    assert lines[0].startswith("**ResNet-20 on CIFAR-10**") and "1,024 calibration images" in lines[0]
    assert "| `best` | binary | **60.00** | 79.00 | **79.00** |" in lines
    assert (
        "| `ftbc` | binary | 10.00 | **80.00** | 70.00 |" in lines
        and "| `snnc-lp` | binary | 20.00 | **80.00** | - |" in lines
    )
    assert "| `differential` | multi-level | 75.00 | - | - |" in lines and "| `srp` | binary | - | 89.00 | - |" in lines
    assert "| test images |  | 10,000 | 2,000 | 2,000 |" in lines and not any("tsc" in line for line in lines)


def test_claims_are_checked_at_each_step(folder: Path) -> None:
    lines = comparisons.claims(folder, folder).splitlines()
    assert "| FTBC is at least SNNC-LP | ResNet-20 on CIFAR-10 | 32 | 1 (10.00 against 20.00) |" in lines
    assert any(
        line.startswith("| `best` is above every") and "| 1 | 32 (79.00 against 80.00) |" in line for line in lines
    )
    assert "| FTBC (+QCFS) is above QCFS | own VGG-16 | 1 | 2 (70.00 against 70.00) |" in lines
    assert not any("SNNC-AP" in line for line in lines), "nothing is claimed of what was not measured"


def test_a_method_measured_twice_is_refused(folder: Path) -> None:
    (folder / "resnet20.more.csv").write_text(HEAD + "\nftbc,32,81.0,90.5,2000,256,binary,0,True\n")
    with pytest.raises(ValueError, match="measured twice: ftbc at T = 32"):
        comparisons.accuracies("resnet20", folder)


def test_one_method_above_best_is_enough_to_refute_it(tmp_path: Path) -> None:
    """At T = 2 and 4 one of the others was not measured, which at T = 4 does not matter."""
    rows = [("snnc-lp", 1, 20), ("ftbc", 1, 30), ("best", 1, 60), ("ftbc", 2, 40), ("best", 2, 70)]
    rows += [("ftbc", 4, 90), ("best", 4, 80)]
    text = "".join(f"{name},{t},{accuracy},95.0,100,10,binary,0,True\n" for name, t, accuracy in rows)
    (tmp_path / "resnet20.csv").write_text(HEAD + "\n" + text)
    lines = comparisons.claims(tmp_path, tmp_path).splitlines()
    assert any("above every" in line and line.endswith("| 1 | 4 (80.00 against 90.00) |") for line in lines)


def test_beside_ftbc_alone_best_is_compared_with_it_and_with_no_others(tmp_path: Path) -> None:
    text = "".join(
        f"{name},1,{accuracy},95.0,100,10,binary,0,True\n" for name, accuracy in (("ftbc", 30), ("best", 60))
    )
    (tmp_path / "vgg16-cifar10.csv").write_text(HEAD + "\n" + text)
    claims = comparisons.claims(tmp_path, tmp_path)
    assert "| `best` is above FTBC | own VGG-16 on CIFAR-10 | 1 | - |" in claims
    assert "every other method" not in claims


def test_nothing_measured_yet(tmp_path: Path) -> None:
    assert all("Not measured" in make() for make in comparisons.blocks(tmp_path, tmp_path).values())


def test_the_page_shows_the_results_of_the_repository() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text()
    wanted = comparisons.blocks(ROOT / "results" / "compare", ROOT / "results" / "reproduce")
    assert filled(page, wanted) == page, "run python -m benchmarks.comparisons --write"


def test_what_several_runs_measured_is_one_table(folder: Path) -> None:
    (folder / "resnet20.later.csv").write_text(HEAD + "\nsnnc-lp,64,85.0,90.5,2000,256,binary,0,True\n")
    (folder / "resnet20-other.csv").write_text(HEAD + "\nsnnc-lp,128,1.0,90.5,2000,256,binary,0,True\n")
    lines = comparisons.accuracies("resnet20", folder).splitlines()
    assert "| `snnc-lp` | binary | 20.00 | **80.00** | **85.00** |" in lines, "of its own network alone"
    claims = comparisons.claims(folder, folder)
    assert "64 (70.00 against 85.00)" in claims
