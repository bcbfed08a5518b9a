"""Numbers and names in sentences."""

import doctest
import re

import optuna
from documents import ROOT
from studies import past_study

from metatpe import MetaTPESampler, Task, words
from metatpe.baselines import RGPESampler


def test_the_examples_are_right() -> None:
    assert doctest.testmod(words).failed == 0


def test_thousands_are_grouped() -> None:
    assert words.counted(12345, "trial") == "12,345 trials"


def test_one_of_anything_is_singular() -> None:
    study = past_study(n=2, directions=["minimize"])
    for sampler in (MetaTPESampler([study]), RGPESampler([study])):
        assert "(1 source, " in repr(sampler)
    space = {"x": optuna.distributions.FloatDistribution(0, 1)}
    one = past_study(n=1, directions=["minimize"], space=space)
    assert "1 observation, 1 parameter, 1 objective)" in repr(Task.from_study(one))


# Phrases that readers found odd, from earlier versions of the pages.
ODD = re.compile(
    r"turned round|ha(s|ve) a say|said once|some hundred|have paid|studies weighed|chosen anew"
    r"|one an objective|out of the past|all along|still pays|(is|are) away\b",
    flags=re.IGNORECASE,
)


def test_phrases_that_readers_found_odd_do_not_come_back() -> None:
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for folder in ("src", "examples", "optunahub"):
        texts += [p for kind in ("*.py", "*.md") for p in (ROOT / folder).rglob(kind)]
    assert len(texts) > 200
    found = [(p.name, hit[0]) for p in texts if (hit := ODD.search(p.read_text("utf-8")))]
    assert found == []
