"""Ray Tune with metatpe: two objectives, several trials at once, and two past studies.

    pip install 'metatpe[ray]'
    python examples/ray_tune.py --trials 40 --at-once 4

Ray Tune's OptunaSearch takes any Optuna sampler. The sampler stays with the driver, which asks it
for a configuration whenever Ray has room for another trial; it knows those that are still running.
The studies, past and new, are kept in a SQLite file.
"""

from __future__ import annotations

import argparse
import logging
import math
from pathlib import Path

import optuna
import ray
from ray import tune
from ray.tune.search.optuna import OptunaSearch

from metatpe import MetaTPESampler, load_tasks, transfer_history

SPACE = {
    "lr": tune.loguniform(1e-5, 1e-1),
    "width": tune.randint(1, 9),  # 1 to 8
    "act": tune.choice(["relu", "tanh"]),
}


def train(config: dict, shift: float = 0.0) -> dict[str, float]:
    """Return the error and the cost of a made-up training."""
    error = (math.log10(config["lr"]) + 3.0 - shift) ** 2 + 1.0 / config["width"]
    return {"error": error + 0.2 * (config["act"] == "tanh"), "cost": float(config["width"])}


def store_past_studies(url: str) -> None:
    """Store two studies of 50 random trials, if they are not there."""
    for shift in (0.2, 0.5):
        study = optuna.create_study(
            study_name=f"past-{shift:g}",
            storage=url,
            directions=["minimize", "minimize"],
            sampler=optuna.samplers.RandomSampler(seed=0),
            load_if_exists=True,
        )
        distributions = OptunaSearch.convert_search_space(SPACE)
        for _ in range(50 - len(study.trials)):
            trial = study.ask(distributions)
            study.tell(trial, list(train(trial.params, shift).values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=Path("metatpe-ray"))
    parser.add_argument("--address", help="of a Ray cluster; without it, one on this machine")
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    url = f"sqlite:///{folder / 'studies.db'}"
    store_past_studies(url)

    search = OptunaSearch(
        metric=["error", "cost"],  # here and not in TuneConfig, because there are two
        mode=["min", "min"],
        sampler=MetaTPESampler(load_tasks(url, "past-*"), seed=0),
        study_name="new",
        storage=optuna.storages.RDBStorage(url),
    )
    ray.init(address=args.address, log_to_driver=False, logging_level=logging.ERROR)
    tuner = tune.Tuner(
        train,
        param_space=SPACE,
        tune_config=tune.TuneConfig(
            search_alg=search, num_samples=args.trials, max_concurrent_trials=args.at_once
        ),
        run_config=tune.RunConfig(name="new", storage_path=str(folder / "ray"), verbose=0),
    )
    results = tuner.fit()
    ray.shutdown()

    study = optuna.load_study(study_name="new", storage=url)
    for record in transfer_history(study):
        values = study.trials[record.number].values
        print(record.number, values, record.origin, record.weights)
    print(f"{len(results)} trials, {results.num_errors} errors, best:")
    for trial in study.best_trials:
        print(f"  error {trial.values[0]:.4f} cost {trial.values[1]:.0f} {trial.params}")


if __name__ == "__main__":
    main()
