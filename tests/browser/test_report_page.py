"""The report in a real browser: what it shows is what the study holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import DESKTOP, PHONE, SECONDS, Open, Visit
from optuna.study import Study
from studies import evaluate, new_study, past_study
from transferred import ODD, large_study, odd_study, transferred

from metatpe import MetaTPESampler, transfer_history
from metatpe.report import html_report
from metatpe.report.pdf import browser, print_pdf

pytest.importorskip("plotly")

PLOTS = ["front", "progress", "weights", "overlap", "importances"]
DRAWN = "html[data-plots=drawn]"


@pytest.fixture(scope="module")
def studies() -> tuple[Study, Study]:
    return transferred(25)


@pytest.fixture(scope="module")
def address(studies: tuple[Study, Study], tmp_path_factory: pytest.TempPathFactory) -> str:
    study, past = studies
    return written(html_report(study, [past]), tmp_path_factory.mktemp("report"))


def written(page: str, folder: Path) -> str:
    path = folder / "report.html"
    path.write_text(page, "utf-8")
    return path.as_uri()


def traces(seen: Visit, name: str) -> list[dict[str, Any]]:
    """Return the traces of a plot: name, numbers, and the hover text of each."""
    found: list[dict[str, Any]] = seen.do(
        """(name) => document.getElementById(name)._fullData.map((trace) => ({
            name: trace.name, mode: trace.mode, hovertext: [...(trace.hovertext || [])],
            x: [...(trace.x || [])], y: [...(trace.y || [])],
        }))""",
        name,
    )
    return found


def rows(seen: Visit, name: str) -> list[list[str]]:
    """Return the first table below a plot, cell by cell."""
    found: list[list[str]] = seen.do(
        """(name) => [...document.getElementById(name).closest("section").querySelector("tbody")
            .rows].map((row) => [...row.cells].map((cell) => cell.innerText))""",
        name,
    )
    return found


def trace(seen: Visit, plot: str, name: str) -> dict[str, Any]:
    return next(t for t in traces(seen, plot) if t["name"] == name)


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (PHONE, "light"),
        (DESKTOP, "dark"),
        pytest.param(PHONE, "dark", marks=pytest.mark.slow),
        pytest.param(DESKTOP, "light", marks=pytest.mark.slow),
    ],
)
def test_all_is_drawn_without_complaint_and_without_a_network(
    visit: Open, address: str, scheme: str, width: int
) -> None:
    with visit(address, scheme=scheme, width=width) as seen:
        seen.page.wait_for_selector(DRAWN)
        assert seen.do("[...document.querySelectorAll('.plot')].map((e) => e.id)") == PLOTS
        assert seen.do("document.querySelectorAll('.plot svg.main-svg').length") >= len(PLOTS)
        assert seen.complaints == []
        assert seen.requests == [address]
        # Nothing sticks out: only tables may scroll sideways, in themselves.
        assert seen.do("document.documentElement.scrollWidth") == width
        assert seen.do(
            "[...document.querySelectorAll('.plot')].every((e) => e.scrollWidth <= e.clientWidth)"
        )


def luminance(colour: str) -> float:
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
    linear = [c / 12.92 if c <= 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_the_page(visit: Open, address: str, scheme: str) -> None:
    with visit(address, scheme=scheme) as seen:
        seen.page.wait_for_selector(DRAWN)
        paper, *inks = seen.do(
            """() => [getComputedStyle(document.body).backgroundColor].concat(
                ["h1", "td", "th", "figcaption"].map(
                    (name) => getComputedStyle(document.querySelector(name)).color),
                [getComputedStyle(document.querySelector("#front .xtick text")).fill])"""
        )
        assert (luminance(paper) < 0.1) == (scheme == "dark")
        for ink in inks:
            dark, light = sorted([luminance(ink), luminance(paper)])
            assert (light + 0.05) / (dark + 0.05) >= 4.5  # what WCAG asks for


@pytest.mark.slow
def test_the_plots_follow_when_the_scheme_changes(visit: Open, address: str) -> None:
    with visit(address, scheme="light") as seen:
        seen.page.wait_for_selector(DRAWN)
        colour = "getComputedStyle(document.querySelector('#front .xtick text')).fill"
        before = seen.do(colour)
        seen.page.emulate_media(color_scheme="dark")
        for _ in range(10 * SECONDS):  # the page's own policy lets nothing wait inside of it
            if luminance(seen.do(colour)) > luminance(before):
                break
            seen.page.wait_for_timeout(100)
        assert luminance(seen.do(colour)) > luminance(before)


def test_the_front_is_that_of_the_study(
    visit: Open, address: str, studies: tuple[Study, Study]
) -> None:
    study, _ = studies
    best = sorted(study.best_trials, key=lambda t: t.values)
    with visit(address) as seen:
        seen.page.wait_for_selector(DRAWN)
        line = trace(seen, "front", "front")
        np.testing.assert_allclose(line["x"], [t.values[0] for t in best])
        np.testing.assert_allclose(line["y"], [t.values[1] for t in best])
        points = [t for t in traces(seen, "front") if t["name"] != "front"]
        assert sum(len(t["x"]) for t in points) == len(study.trials)
        hover = [text for t in points for text in t["hovertext"]]
        for trial in best:
            (text,) = [h for h in hover if f"<b>trial {trial.number}</b>" in h]
            assert f"error: {trial.values[0]:.5g}" in text
            assert f"kind = {trial.params['kind']}" in text
        assert [int(row[0]) for row in rows(seen, "front")] == [t.number for t in best]


@pytest.mark.slow
def test_hovering_over_a_point_shows_its_configuration(visit: Open, address: str) -> None:
    with visit(address) as seen:
        seen.page.wait_for_selector(DRAWN)
        seen.do("document.getElementById('front').scrollIntoView()")
        hover = "() => Plotly.Fx.hover('front', [{curveNumber: 1, pointNumber: 0}])"
        seen.do(hover)
        shown = seen.page.text_content("#front .hoverlayer")
        assert shown.startswith("trial ")
        assert "error: " in shown


def test_weights_and_origins_are_those_of_the_records(
    visit: Open, address: str, studies: tuple[Study, Study]
) -> None:
    study, _ = studies
    records = transfer_history(study)
    weighed = [record for record in records if record.weights]
    warm = [record.number for record in records if record.origin == "warm_start"]
    by_lane = {"portfolio": "portfolio", "warm start": "best"}  # lane -> reason
    with visit(address) as seen:
        seen.page.wait_for_selector(DRAWN)
        past = trace(seen, "weights", "past")
        assert past["x"] == [record.number for record in weighed]
        np.testing.assert_allclose(past["y"], [record.weights["past"] for record in weighed])
        for lane, reason in by_lane.items():
            own = [record.number for record in records if record.reason == reason]
            assert trace(seen, "weights", lane)["x"] == own != []
        (row, *_) = rows(seen, "weights")
        assert row[:2] == ["past", "30"]
        assert row[2].startswith("trials ")
        assert [int(n) for n in re.findall(r"\d+", row[2])] == warm


def test_what_looks_like_html_or_script_is_shown_as_text(visit: Open, tmp_path: Path) -> None:
    study, past = odd_study()
    address = written(html_report(study, [past]), tmp_path)
    with visit(address) as seen:
        seen.page.wait_for_selector(DRAWN)
        assert seen.page.inner_text("h1") == ODD
        assert seen.page.title() == ODD
        assert seen.page.text_content("body").count(ODD) > 10
        seen.do("() => Plotly.Fx.hover('front', [{curveNumber: 1, pointNumber: 0}])")
        assert "onerror" in seen.page.text_content("#front .hoverlayer")
        assert "onerror" in seen.page.text_content("#front .infolayer")  # the name of an axis
        assert seen.do("window.hacked") is None
        assert seen.do("document.querySelectorAll('main img, main b, main a').length") == 0
        assert seen.complaints == []
        assert seen.requests == [address]


def test_a_page_lets_no_script_in_that_is_not_its_own(visit: Open, tmp_path: Path) -> None:
    page = html_report(past_study(n=3))
    evil = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    with visit(written(page.replace("<main>", f"<main>{evil}"), tmp_path)) as seen:
        seen.page.wait_for_selector(DRAWN)
        assert seen.do("window.hacked") is None
        assert len(seen.complaints) >= 2  # the browser tells what it did not do


@pytest.mark.slow
def test_one_objective_shows_its_best_value(visit: Open, tmp_path: Path) -> None:
    past = past_study(n=10, directions=["maximize"])
    study = new_study(MetaTPESampler([past], seed=0), ("maximize",))
    evaluate(study, 8)
    with visit(written(html_report(study, [past]), tmp_path), width=PHONE) as seen:
        seen.page.wait_for_selector(DRAWN)
        (curve,) = traces(seen, "progress")
        values = [t.values[0] for t in study.trials]
        np.testing.assert_allclose(curve["y"], np.maximum.accumulate(values))
        assert seen.complaints == []


@pytest.mark.parametrize("n", [0, 1])
def test_a_study_with_hardly_a_trial_has_a_page(visit: Open, tmp_path: Path, n: int) -> None:
    study = new_study(MetaTPESampler([past_study()], seed=0))
    evaluate(study, n)
    study.ask()
    with visit(written(html_report(study), tmp_path)) as seen:
        seen.page.wait_for_selector(DRAWN)
        assert "The study is still running." in seen.text
        assert seen.complaints == []


@pytest.mark.slow
def test_a_large_study_is_drawn_too(visit: Open, tmp_path: Path, rng: np.random.Generator) -> None:
    study, past = large_study(1000, 50, rng)
    with visit(written(html_report(study, past), tmp_path), width=PHONE) as seen:
        seen.page.wait_for_selector(DRAWN)
        assert sum(len(t["x"]) for t in traces(seen, "front")[1:]) == 1000
        assert seen.do("document.documentElement.scrollWidth") == PHONE
        assert seen.complaints == []


@pytest.mark.slow
def test_the_page_is_printed(address: str, tmp_path: Path) -> None:
    try:
        program = browser()
    except ValueError as error:
        pytest.skip(str(error))
    out = tmp_path / "report.pdf"
    print_pdf(Path(address.removeprefix("file://")), out, program)
    assert out.read_bytes().startswith(b"%PDF")
    assert len(out.read_bytes()) > 30_000  # the plots are in there
