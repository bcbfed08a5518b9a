"""`metatpe dashboard`: what it writes into studies, and why it cannot start."""

import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import optuna
import pytest
from commands import refusal
from optuna.storages import BaseStorage, RDBStorage
from studies import past_study, postgresql
from transferred import GRAPHS, ODD, odd_study, saved_figures, system_attributes_of

from metatpe.cli.dashboard import publish_all
from metatpe.past.read.storage import open_storage
from metatpe.viz import plot_hypervolume

pytest.importorskip("optuna_dashboard")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Optuna, which the command makes quiet, is loud again afterwards."""
    with warnings.catch_warnings():
        yield
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture(params=["sqlite", "postgresql"])
def relational(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BaseStorage]:
    if request.param == "sqlite":
        yield RDBStorage(f"sqlite:///{tmp_path_factory.mktemp('dashboard') / 'studies.db'}")
        return
    with postgresql(tmp_path_factory.mktemp("postgresql")) as url:
        storage = RDBStorage(url)
        yield storage
        storage.remove_session()
        storage.engine.dispose()


def test_relational_storages_take_it_in_pieces(relational: BaseStorage) -> None:
    study, past = odd_study(relational)
    publish_all(relational)
    study = optuna.load_study(study_name=ODD, storage=relational)
    figures = saved_figures(study)
    assert figures.keys() == GRAPHS
    values = system_attributes_of(study).values()
    pieces = [value for value in values if isinstance(value, str)]
    assert all(len(piece) < 2046 for piece in pieces)
    assert len(pieces) > len(GRAPHS) + 1  # a figure takes more than one
    assert figures["metatpe-progress"] == json.loads(plot_hypervolume(study).to_json()) | {
        "layout": figures["metatpe-progress"]["layout"]
    }
    assert not system_attributes_of(past)


def test_the_command_says_why_it_cannot_start(tmp_path: Path) -> None:
    path = str(tmp_path / "studies.log")
    past_study(storage=open_storage(path, create=True))
    for arguments, sentence in [
        (("--storage", "sqlite:///no.db"), "there is no file no.db."),
        (("--storage", path, "--host", "192.0.2.1"), "cannot listen at 192.0.2.1:8080"),
    ]:
        assert sentence in refusal("dashboard", *arguments)
