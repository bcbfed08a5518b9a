"""Several processes prune on one PostgreSQL: they decide alike, given what is stored."""

import pickle
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from studies import answer_of, postgresql, start_python

from metatpe import Task, TransferPruner, pruning_history

N_WORKERS, N_TRIALS, N_STEPS = 3, 5, 20
WORKER = """
import json, math, pickle, sys, time
from pathlib import Path
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
url, folder, seed = {url!r}, Path({folder!r}), {seed}
pruner = pickle.loads((folder / "pruner").read_bytes())
sampler = optuna.samplers.RandomSampler(seed=seed)
study = optuna.load_study(study_name="new", storage=url, sampler=sampler, pruner=pruner)

def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    for step in range({n_steps}):
        trial.report(x + math.exp(-0.4 * step), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return x

study.optimize(objective, n_trials={n_trials})
(folder / f"done-{seed}").touch()
while not (folder / "go").exists():
    time.sleep(0.05)
running = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,))
print(json.dumps([pruner.prune(study, trial) for trial in running]))
"""


@pytest.fixture
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgresql(tmp_path_factory.mktemp("pg")) as url:
        yield url


def past_task() -> Task:
    study = optuna.create_study(study_name="old")
    for x in np.random.default_rng(0).random(60).tolist():
        values = {step: x + float(np.exp(-0.4 * step)) for step in range(N_STEPS)}
        study.add_trial(
            optuna.create_trial(
                params={"x": x},
                distributions={"x": optuna.distributions.FloatDistribution(0, 1)},
                value=x,
                intermediate_values=values,
            )
        )
    return Task.from_study(study)


@pytest.mark.slow
def test_workers_on_one_database_prune_and_decide_alike(url: str, tmp_path: Path) -> None:
    pruner = TransferPruner([past_task()])
    (tmp_path / "pruner").write_bytes(pickle.dumps(pruner))
    study = optuna.create_study(study_name="new", storage=url, pruner=pruner)
    common = {"url": url, "folder": str(tmp_path), "n_steps": N_STEPS, "n_trials": N_TRIALS}
    started = [start_python(WORKER.format(seed=seed, **common)) for seed in range(N_WORKERS)]
    try:
        deadline = time.monotonic() + 120
        while len(list(tmp_path.glob("done-*"))) < N_WORKERS:
            dead = [w.communicate() for w in started if w.poll() is not None]
            assert not dead, dead
            assert time.monotonic() < deadline
            time.sleep(0.1)
        check_records(study)
        for x in np.linspace(0.0, 1.0, 9).tolist():
            probe = study.ask()
            for step in range(4):
                probe.report(x + float(np.exp(-0.4 * step)), step)
        (tmp_path / "go").touch()
        answers = [answer_of(worker) for worker in started]
    finally:
        for worker in started:
            worker.kill()
            worker.communicate()
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    fresh = pickle.loads(pickle.dumps(pruner))
    expected = [fresh.prune(study, trial) for trial in running]
    assert answers == [expected] * N_WORKERS
    assert {True, False} == set(expected)


def check_records(study: optuna.Study) -> None:
    """Check that what was pruned has a record, and that its curve ends there."""
    trials = study.get_trials(deepcopy=False)
    assert len(trials) == N_WORKERS * N_TRIALS
    assert all(trial.state.is_finished() for trial in trials)
    records = pruning_history(study)
    assert records
    pruned = [t.number for t in trials if t.state == TrialState.PRUNED]
    assert [record.number for record in records] == pruned
    assert all(max(trials[r.number].intermediate_values) == r.step for r in records)
