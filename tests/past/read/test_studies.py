"""Past studies by name: what is found, what is left out, and what is said of it."""

from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.storages import BaseStorage, InMemoryStorage
from studies import TWO, past_study

from metatpe import Space, Task, load_tasks
from metatpe.past.read.studies import as_tasks
from metatpe.past.read.summary import store_task

UNIT = FloatDistribution(0, 1)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with the studies resnet-1, resnet-2, vgg, fresh (empty) and short (one trial)."""
    url = f"sqlite:///{tmp_path_factory.mktemp('storage') / 'studies.db'}"
    sizes = {"vgg": 4, "resnet-2": 3, "resnet-1": 2, "fresh": 0, "short": 1}
    for name, n in sizes.items():
        study = optuna.create_study(study_name=name, storage=url, direction="maximize")
        for i in range(n):
            study.tell(study.ask({"x": UNIT, "c": CategoricalDistribution((None, "a"))}), float(i))
    return url


@pytest.fixture(scope="module")
def opened(storage: str) -> optuna.storages.RDBStorage:
    """The same database as an object, which is quicker than opening it again."""
    return optuna.storages.RDBStorage(storage)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("vgg", ["vgg"]),
        ("resnet-*", ["resnet-1", "resnet-2"]),
        ("*", ["resnet-1", "resnet-2", "vgg"]),
        (["vgg", "resnet-?"], ["vgg", "resnet-1", "resnet-2"]),
        (["resnet-2", "res*"], ["resnet-2", "resnet-1"]),
        (["fresh"], []),
        ([], []),
    ],
)
def test_studies_are_loaded_by_name_and_pattern(
    opened: optuna.storages.RDBStorage, names: str | list[str], found: list[str]
) -> None:
    assert [task.name for task in load_tasks(opened, names)] == found


def test_a_loaded_task_is_the_stored_study(
    storage: str, opened: optuna.storages.RDBStorage
) -> None:
    (task,) = load_tasks(storage, "vgg")
    study = optuna.load_study(study_name="vgg", storage=storage)
    assert task.configurations(range(4)) == [dict(sorted(t.params.items())) for t in study.trials]
    assert task.losses.tolist() == [[0.0], [-1.0], [-2.0], [-3.0]]
    (from_object,) = load_tasks(opened, "vgg")
    np.testing.assert_array_equal(from_object.X, task.X)


def test_studies_with_too_few_trials_are_left_out_and_that_is_said(
    opened: optuna.storages.RDBStorage, caplog: pytest.LogCaptureFixture
) -> None:
    load_tasks(opened)
    assert "study 'short' is left out: it has 1 finished trial" in caplog.text
    assert "study 'fresh' is left out" in caplog.text


def test_a_study_without_parameters_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    storage = InMemoryStorage()
    study = optuna.create_study(study_name="constant", storage=storage)
    study.optimize(lambda trial: 1.0, n_trials=3)
    assert load_tasks(storage, "*") == []
    assert "study 'constant' is left out" in caplog.text


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            "resnet-3",
            r"no study is called 'resnet-3'; similar names are \['resnet-\d', 'resnet-\d'\]",
        ),
        ("xyz*", r"no study is called 'xyz\*'; the storage has \['fresh', 'resnet-1', "),
        (["vgg", "vg"], r"no study is called 'vg'; similar names are \['vgg'\]"),
    ],
)
def test_an_unknown_name_is_refused_with_the_close_ones(
    opened: optuna.storages.RDBStorage, names: str | list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        load_tasks(opened, names)


def test_of_many_close_names_three_are_said() -> None:
    storage = InMemoryStorage()
    for i in range(7):
        optuna.create_study(study_name=f"study {i}", storage=storage)
    with pytest.raises(ValueError, match=r"similar names are \['study \d'(, 'study \d'){2}\]"):
        load_tasks(storage, "study")


def test_where_no_name_is_close_some_that_there_are_are_said() -> None:
    storage = InMemoryStorage()
    for i in range(2, 7):
        optuna.create_study(study_name=f"study {i}", storage=storage)
    with pytest.raises(ValueError, match=r"; the storage has \['study 2', .*, 'study 6'\]\.$"):
        load_tasks(storage, "xyz")
    for i in (1, 0):
        optuna.create_study(study_name=f"study {i}", storage=storage)
    said = (
        r"; the storage has \['study 0', 'study 1', 'study 2', 'study 3', 'study 4'\] and 2 more\."
    )
    with pytest.raises(ValueError, match=said):
        load_tasks(storage, "xyz")


def test_an_empty_storage_says_so() -> None:
    with pytest.raises(ValueError, match="the storage has no study"):
        load_tasks(InMemoryStorage(), "a")


def test_a_name_with_the_letters_of_a_pattern_is_found_as_it_is() -> None:
    storage = InMemoryStorage()
    study = optuna.create_study(study_name="run[1]", storage=storage)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    assert [task.name for task in load_tasks(storage, "run[1]")] == ["run[1]"]


# A new study, and those that can help it


def study_with(
    storage: BaseStorage, name: str, names: list[str], space: str = "xy", n: int = 4
) -> optuna.Study:
    study = optuna.create_study(
        study_name=name, storage=storage, directions=["minimize"] * max(1, len(names))
    )
    if all(names):
        study.set_metric_names(names)
    for _ in range(n):
        trial = study.ask(dict.fromkeys(space, FloatDistribution(0, 1)))
        study.tell(trial, [0.0] * len(study.directions))
    return study


@pytest.fixture
def shared() -> BaseStorage:
    storage = InMemoryStorage()
    study_with(storage, "same", ["error", "time"])
    study_with(storage, "unnamed", ["", ""])
    study_with(storage, "single", ["error"])
    study_with(storage, "other names", ["error", "size"])
    study_with(storage, "other space", ["error", "time"], "ab")
    study_with(storage, "half", ["error", "time"], "yz")
    return storage


def test_only_tasks_that_can_help_are_kept(
    shared: BaseStorage, caplog: pytest.LogCaptureFixture
) -> None:
    new = study_with(shared, "new", ["error", "time"], n=2)
    assert [t.name for t in load_tasks(shared, like=new)] == ["half", "same", "unnamed"]
    said = {record.getMessage() for record in caplog.records}
    assert said == {
        "study 'new' is left out: it is the new study itself.",
        "study 'other names' is left out: its objectives are ['error', 'size'], "
        "and not ['error', 'time'].",
        "study 'other space' is left out: it has no parameter in common with the new study.",
        "study 'single' is left out: it has 1 objective, but the new study has 2.",
    }


def test_the_new_study_may_be_given_by_its_name(shared: BaseStorage) -> None:
    new = study_with(shared, "new", ["error", "time"], n=2)
    by_name = [t.name for t in load_tasks(shared, like="new")]
    assert by_name == [t.name for t in load_tasks(shared, like=new)]


def test_the_new_study_may_be_given_by_its_space(shared: BaseStorage) -> None:
    for space in ({"a": UNIT}, Space({"a": UNIT})):
        assert [t.name for t in load_tasks(shared, like=space)] == ["other space"]


def test_a_new_study_that_is_not_there_is_explained(shared: BaseStorage) -> None:
    with pytest.raises(
        ValueError, match=r"like='sam': no study is called 'sam'; similar names are"
    ) as e:
        load_tasks(shared, like="sam")
    assert "Give the new study itself, its search space as a dictionary" in str(e.value)
    with pytest.raises(ValueError, match="like must be a study, the name of one, or a search"):
        load_tasks(shared, like=3)  # type: ignore[arg-type]


def test_nothing_is_known_of_the_space_of_a_study_without_trials(shared: BaseStorage) -> None:
    new = study_with(shared, "new", ["", ""], n=0)
    names = {t.name for t in load_tasks(shared, like=new)}
    assert names == {"half", "same", "unnamed", "other names", "other space"}


def test_a_default_may_be_all_that_is_shared(shared: BaseStorage) -> None:
    new = study_with(shared, "new", ["error", "time"], "q")
    assert load_tasks(shared, like=new) == []
    found = load_tasks(shared, like=new, defaults={"q": 0.5})
    assert [t.name for t in found] == ["half", "other space", "same", "unnamed"]
    assert all(t.configuration(0)["q"] == 0.5 for t in found)


def test_a_study_is_known_again_under_another_address(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    study = past_study(n=3, name="new", storage=url)
    past_study(n=3, name="old", storage=url)
    other = f"sqlite:///{tmp_path / '.' / 'studies.db'}?timeout=7"
    assert [t.name for t in load_tasks(other, like=study)] == ["old"]


def test_a_study_of_the_same_name_elsewhere_may_help() -> None:
    old, new = InMemoryStorage(), InMemoryStorage()
    past_study(n=3, name="resnet", storage=old)
    study = past_study(n=3, seed=1, name="resnet", storage=new)
    assert [t.name for t in load_tasks(old, like=study)] == ["resnet"]
    assert load_tasks(new, like=study) == []


def test_studies_of_one_name_with_waiting_trials_are_not_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'old.db'}"
    past = past_study(name="same", storage=url)
    new = optuna.create_study(study_name="same", directions=TWO)
    for study in (past, new):
        study.enqueue_trial({"x": 0.5})  # which has not begun
    assert [task.name for task in load_tasks(url, "same", like=new)] == ["same"]


def test_a_task_is_stored_as_a_study_with_the_values_of_its_objectives() -> None:
    X, losses = np.array([[0.1], [0.9]]), np.array([[0.0, -2.0], [1.0, 0.0]])
    task, storage = Task("old", Space({"x": UNIT}), X=X, losses=losses), InMemoryStorage()
    store_task(task, storage, "new", ["minimize", "maximize"], rows=[0, 1], step=lambda n: None)
    trials = optuna.load_study(study_name="new", storage=storage).trials
    assert repr([t.values for t in trials]) == "[[0.0, 2.0], [1.0, 0.0]]"  # and no -0.0


def test_sources_with_one_name_get_names_of_their_own() -> None:
    X, losses = np.array([[0.1], [0.9]]), np.array([[0.0], [1.0]])
    tasks = [Task(name, Space({"x": UNIT}), X=X, losses=losses) for name in ("a", "a", "target")]
    names = [task.name for task in as_tasks(tasks)]
    assert names[0] == "a"
    assert len({*names, "target"}) == 4
