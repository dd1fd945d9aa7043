"""The page: all of it in one file, text kept from being code, and alive in a browser where one is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from torch import nn

import ftbc
from ftbc.conversion_report import conversion_page
from ftbc.data import Images, Normalise
from ftbc.errors import InputError
from ftbc.measure.energy import CMOS_45NM, energy_models
from ftbc.report.html import Page, render, write
from ftbc.report.png import png
from ftbc.report.series import Baseline, Point, Series
from tests.conftest import Refused

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
HOSTILE = "</script><script>document.title='broken'</script> & <b>"
STEPS = 3


def _network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(36, 8), nn.ReLU(),
        nn.Linear(8, 3),
    ).eval()  # fmt: skip


@pytest.fixture(scope="module")
def page() -> Page:
    network = _network()
    pixels = torch.randint(0, 256, (20, 3, 6, 6), generator=torch.Generator().manual_seed(1)).to(torch.uint8)
    images = Images(pixels, torch.arange(20) % 3, Normalise((0.5,) * 3, (0.5,) * 3), "squares")
    quick = ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(batch=8, iterations=2),))
    snn = ftbc.convert(network, images, STEPS, quick)
    others = {"mean-square": ftbc.convert(network, images, STEPS, "mean-square")}
    return conversion_page(network, snn, images, images, others, facts={"seed": 7}, command="ftbc report x")


class _Reader(HTMLParser):
    """Collects tags with their settings, and what is inside the element of data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self._in_data = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in_data = ("id", "data") in attrs

    def handle_endtag(self, tag: str) -> None:
        self._in_data = False

    def handle_data(self, data: str) -> None:
        self.data += data if self._in_data else ""


def test_nothing_comes_from_outside(page: Page) -> None:
    text = render(page)
    for tag, settings in _Reader(text).tags:
        assert tag not in ("iframe", "object", "embed")
        for name in ("src", "href"):
            assert (settings.get(name) or "#").startswith(("#", "data:")), (tag, settings)
    assert "@import" not in text and "url(" not in text and "fetch(" not in text and "XMLHttp" not in text
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) <= {"http://www.w3.org/2000/svg"}


def test_the_data_of_the_page_are_those_that_were_measured(page: Page) -> None:
    data = json.loads(_Reader(render(page)).data)
    assert [series["name"] for series in data["series"]] == ["ftbc", "mean-square"]
    assert [point["t"] for point in data["series"][0]["points"]] == [1, 2, 3]
    assert [row["name"] for row in data["baselines"]] == ["ANN", "ANN, 1-bit", "ANN, 2-bit", "ANN, 8-bit"]
    assert data["models"] == list(energy_models()) and len(data["layers"]) == 2
    assert page.inside is not None
    assert [answer["said"] for answer in data["answers"]] == page.inside.predictions and len(data["answers"]) == 12
    assert data["answers"][1]["label"] == 1 and data["answers"][0]["address"].startswith("data:image/png;base64,")


def test_every_part_is_named_and_every_control_has_a_label(page: Page) -> None:
    text = render(page)
    tags = _Reader(text).tags
    identities = [settings["id"] for _, settings in tags if "id" in settings]
    assert len(identities) == len(set(identities))
    assert ("html", {"lang": "en"}) in tags
    for tag, settings in tags:
        if tag == "section":
            assert settings["aria-labelledby"] in identities
        if tag == "th":
            assert settings.get("scope") in ("col", "row")
        if tag == "a" and (settings["href"] or "").startswith("#"):
            assert (settings["href"] or "")[1:] in identities
    for control in re.findall(r"<(?:select|input)[^>]*>", text.partition("<script")[0]):
        before = text[: text.index(control)]
        assert before.rfind("<label>") > before.rfind("</label>"), control
    for word in ("seed", "ftbc report x", "torch", "[threshold]", "clipping", "unevenness"):
        assert word in text


def _contrast(one: str, other: str) -> float:
    """How far two colours differ in luminance. Reference: WCAG 2.2, contrast ratio."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_and_lines_stand_out_in_light_and_in_dark(page: Page) -> None:
    roots = re.findall(r":root \{(.*?)\}", render(page), re.DOTALL)
    assert len(roots) == 3  # light, dark, print
    for colours in (dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", root)) for root in roots[:2]):
        assert len(colours) == 14
        for ground in ("page", "card"):
            assert all(_contrast(colours[ground], colours[text]) >= 4.5 for text in ("ink", "quiet", "link"))
            assert all(_contrast(colours[ground], colours[f"c{i}"]) >= 3 for i in range(8))


def test_text_is_never_taken_for_code() -> None:
    series = [Series(HOSTILE, (Point(1, 50.0),))]
    text = render(Page(HOSTILE, HOSTILE, series, [Baseline(HOSTILE, 60.0)], recipe=HOSTILE, facts={HOSTILE: HOSTILE}))
    assert HOSTILE not in text and [tag for tag, _ in _Reader(text).tags].count("script") == 2
    assert json.loads(_Reader(text).data)["series"][0]["name"] == HOSTILE


def test_parts_without_data_are_left_out() -> None:
    text = render(Page("title", "summary", [Series("a", (Point(1, 50.0), Point(4, 60.0)))]))
    identities = {settings.get("id") for _, settings in _Reader(text).tags}
    assert {"curve", "record"} <= identities and not {"energy", "layers", "inside", "images"} & identities


def test_curves_of_different_steps_share_a_table() -> None:
    series = [Series("a", (Point(1, 50.0),)), Series("b", (Point(2, 60.125, 1.5, {CMOS_45NM.name: 2.0}),))]
    text = render(Page("title", "summary", series))
    assert text.count("<td>-</td>") >= 2 and "60.12 ± 1.50" in text and 'scope="col">2<' in text


def test_the_pixels_of_a_png() -> None:
    for channels in (1, 3):
        pixels = torch.randint(0, 256, (channels, 3, 5)).to(torch.uint8)
        content = png(pixels)
        assert content.startswith(b"\x89PNG\r\n\x1a\n") and content.endswith(b"IEND\xaeB`\x82")
        start = content.index(b"IDAT")
        length = int.from_bytes(content[start - 4 : start], "big")
        rows = zlib.decompress(content[start + 4 : start + 4 + length])
        wanted = b"".join(b"\0" + bytes(pixels[:, y].T.flatten().tolist()) for y in range(3))
        assert rows == wanted


def test_what_is_no_picture(refused: Refused) -> None:
    refused(InputError, "1 or 3 channels", png, torch.zeros(2, 4, 4, dtype=torch.uint8))


# ---- in a browser ----------------------------------------------------------------------------------------

CHECK = """<script>
const errors = [];
addEventListener("error", (event) => errors.push(event.message));
</script>"""
USE = """<script>
(() => {
  const $ = (id) => document.getElementById(id), seen = {}, change = (id, value, kind) => {
    $(id).value = value; $(id).dispatchEvent(new Event(kind));
  };
  const drawn = (id) => $(id).innerHTML;
  try {
    for (const id of ["accuracy", "energy", "layers", "membrane", "bias", "raster", "through"])
      seen["drawn " + id] = document.querySelectorAll(`#plot-${id} svg *`).length > 5;
    let before = drawn("plot-energy");
    change("choose-model", "Loihi", "change");
    seen["model"] = drawn("plot-energy") !== before;
    before = drawn("plot-energy");
    $("choose-cached").click();
    seen["cached"] = drawn("plot-energy") !== before;
    before = drawn("plot-raster") + drawn("plot-membrane");
    change("choose-step", "3", "input");
    seen["step"] = drawn("plot-raster") + drawn("plot-membrane") !== before && $("step").textContent === "3 of 3";
    seen["answers follow"] = document.querySelectorAll(".cells li.now").length === 12;
    before = drawn("plot-bias");
    document.querySelector('#table-layers button[data-layer="1"]').click();
    seen["layer"] = drawn("plot-bias") !== before && $("choose-layer").value === "1";
    const svg = document.querySelector("#plot-accuracy svg");
    svg.focus();
    svg.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
    seen["keys"] = $("say-accuracy").textContent.startsWith("t = 1: ftbc ");
    const box = svg.getBoundingClientRect();
    svg.dispatchEvent(new PointerEvent("pointermove", { clientX: box.right - 15, clientY: box.top + 50 }));
    seen["pointer"] = $("say-accuracy").textContent.startsWith("t = 3: ") && !$("tip").hidden;
    svg.dispatchEvent(new PointerEvent("pointerleave"));
    seen["pointer leaves"] = $("tip").hidden;
    seen["fits"] = document.documentElement.scrollWidth <= innerWidth;
    seen["pictures"] = [...document.images].every((image) => image.alt && image.naturalWidth === 6);
  } catch (error) { errors.push(String(error)); }
  const told = document.createElement("pre");
  told.id = "told";
  told.textContent = JSON.stringify({ seen, errors });
  document.body.append(told);
})();
</script>"""


def _in_browser(page: Page, tmp_path: Path, width: int) -> tuple[dict, str]:
    """Open the page, use its controls, and give what happened and what the console said."""
    assert CHROMIUM is not None
    text = render(page).replace("<body>", "<body>" + CHECK).replace("</body>", USE + "</body>")
    file = tmp_path / "page.html"
    file.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--hide-scrollbars",
            f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900", "--virtual-time-budget=2000",
            "--dump-dom", file.as_uri(),
        ],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    found = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(found[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")), "\n".join(console)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
@pytest.mark.parametrize("width", [1100, 500])
def test_in_a_browser_it_opens_without_errors_and_its_controls_work(page: Page, tmp_path: Path, width: int) -> None:
    told, console = _in_browser(page, tmp_path, width)
    assert told["errors"] == [] and console == ""
    assert told["seen"] == dict.fromkeys(told["seen"], True) and len(told["seen"]) == 17


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_page_of_curves_alone_opens_too(page: Page, tmp_path: Path) -> None:
    bare = replace(page, inside=None, pictures=(), series=[Series(HOSTILE, (Point(1, 5.0),))], baselines=())
    _, console = _in_browser(bare, tmp_path, 800)
    assert console == ""


def test_a_page_is_written_whole(page: Page, tmp_path: Path) -> None:
    write(tmp_path / "page.html", page)
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == render(page)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
