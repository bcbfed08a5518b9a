"""optuna-dashboard in a real browser, as `metatpe dashboard` opens it, with our plots and note."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from browsing import SECONDS, Open
from optuna.study import Study
from studies import evaluate
from transferred import ODD, odd_study, transferred

from metatpe import transfer_history
from metatpe.past.read.storage import open_storage

pytest.importorskip("optuna_dashboard")


class Served(NamedTuple):
    url: str
    study: Study
    odd: Study


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The command itself, on a storage with two studies, on a port that is free."""
    path = str(tmp_path_factory.mktemp("dashboard") / "studies.log")
    storage = open_storage(path, create=True)
    study, _ = transferred(20, storage=storage)
    odd, _ = odd_study(storage)
    server = subprocess.Popen(
        [
            *(sys.executable, "-u", "-c", "from metatpe.cli import main; main()"),
            *("dashboard", "--storage", path, "--port", "0"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    try:
        url = server.stdout.readline().split(" is at ")[1].split()[0]
        wait_for(url)
        yield Served(url, study, odd)
    finally:
        server.terminate()
        server.wait()


def wait_for(url: str) -> None:
    for _ in range(10 * SECONDS):
        with contextlib.suppress(OSError), urllib.request.urlopen(url):
            return
        time.sleep(0.1)
    pytest.fail(f"nobody answers at {url}")


def graph(name: str) -> str:
    return f"[id='user-defined-plot:metatpe-{name}']"


def page_of(served: Served, study: Study, *more: str) -> str:
    return "/".join([f"{served.url}dashboard/studies", str(study._study_id), *more])


def test_our_plots_are_on_the_page_of_the_study(visit: Open, served: Served) -> None:
    with visit(page_of(served, served.study)) as seen:
        for name in ("progress", "weights", "importances"):
            seen.page.wait_for_selector(f"{graph(name)} svg.main-svg")
        drawn = json.loads(
            seen.do(
                """(name) => JSON.stringify(document.querySelector(name)._fullData.map(
                    (t) => ({name: t.name, x: [...t.x], y: [...t.y]})))""",
                graph("weights"),
            )
        )
        weighed = [record for record in transfer_history(served.study) if record.weights]
        past = next(trace for trace in drawn if trace["name"] == "past")
        assert past["x"] == [record.number for record in weighed]
        np.testing.assert_allclose(past["y"], [record.weights["past"] for record in weighed])
        assert seen.complaints == []
        assert all(request.startswith(served.url) for request in seen.requests)


def test_plots_stay_within_their_cards(visit: Open, served: Served) -> None:
    with visit(page_of(served, served.study)) as seen:
        seen.page.wait_for_selector(f"{graph('weights')} svg.main-svg")
        assert seen.do(
            """(name) => { const e = document.querySelector(name);
                           return e.scrollHeight <= e.clientHeight; }""",
            graph("weights"),
        )


def test_the_note_tells_what_was_transferred(visit: Open, served: Served) -> None:
    with visit(page_of(served, served.study, "note")) as seen:
        seen.page.wait_for_selector("text=What was transferred")
        assert "The study has 20 trials, 4 parameters, 2 objectives." in seen.text
        assert seen.do("document.querySelectorAll('table td').length") >= 4
        assert "[//]" not in seen.text
        assert seen.complaints == []


@pytest.mark.slow
def test_what_looks_like_html_or_script_is_text_there_too(visit: Open, served: Served) -> None:
    with visit(page_of(served, served.odd, "note")) as seen:
        seen.page.wait_for_selector("text=What was transferred")
        assert f"past {ODD}" in seen.page.text_content("body")
        assert seen.do("window.hacked") is None
        assert seen.do("document.querySelectorAll('td img, td b, td a, td em').length") == 0
    with visit(page_of(served, served.odd)) as seen:
        seen.page.wait_for_selector(f"{graph('weights')} svg.main-svg")
        assert "onerror" in seen.page.text_content(graph("weights"))
        assert seen.do("window.hacked") is None
        assert seen.complaints == []


@pytest.mark.slow
def test_new_trials_appear_while_the_command_runs(visit: Open, served: Served) -> None:
    evaluate(served.study, 2)
    with visit(page_of(served, served.study, "note")) as seen:
        for _ in range(60):
            seen.page.reload()
            seen.page.wait_for_selector("text=What was transferred")
            if "22 trials" in seen.text:
                break
            seen.page.wait_for_timeout(2000)
        assert "The study has 22 trials" in seen.text
