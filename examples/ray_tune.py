"""Ray Tune: two objectives, several trials at once, and three past studies.

    pip install 'metatpe[ray]' scikit-learn
    python examples/ray_tune.py

Ray Tune's OptunaSearch accepts any Optuna sampler. The sampler runs in the driver process, which
asks it for a configuration whenever Ray has room for another trial. The sampler knows which trials
are still running. Past and new studies are stored in a SQLite file. The search is run twice, with
and without past studies.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

import optuna
import ray
from _boosting import SPACE, evaluate, store_past_studies
from _gain import print_gain
from ray import tune
from ray.tune.search.optuna import OptunaSearch

from metatpe import Task, TransferSampler, load_tasks, transfer_history


def train(config: dict) -> dict[str, float]:
    """Return the two objectives of one configuration, by name."""
    r2, size = evaluate(config)
    return {"r2": r2, "size": size}


def search(name: str, url: str, sources: list[Task], args: argparse.Namespace) -> optuna.Study:
    """Tune with Ray; the study is stored under the name."""
    algorithm = OptunaSearch(
        space=SPACE,  # Optuna's distributions, as the past studies have them
        metric=["r2", "size"],  # here and not in TuneConfig, because there are two
        mode=["max", "min"],
        sampler=TransferSampler(sources, seed=0),
        study_name=name,
        storage=optuna.storages.RDBStorage(url),
    )
    tuner = tune.Tuner(
        train,
        tune_config=tune.TuneConfig(
            search_alg=algorithm,
            num_samples=args.trials,
            max_concurrent_trials=args.at_once,
            reuse_actors=True,  # a process is not worth one small training
        ),
        run_config=tune.RunConfig(
            name=name, storage_path=str(args.folder.resolve() / "ray"), verbose=0
        ),
    )
    results = tuner.fit()
    print(f"{name}: {len(results)} trials, {results.num_errors} errors", flush=True)
    return optuna.load_study(study_name=name, storage=url)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=12, help="of each new study")
    parser.add_argument("--at-once", type=int, default=2, help="trials that run together")
    parser.add_argument("--past-trials", type=int, default=20, help="of each past study")
    parser.add_argument("--folder", type=Path, default=Path("metatpe-ray"))
    parser.add_argument("--address", help="of a Ray cluster; without it, one on this machine")
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    args.folder.mkdir(parents=True, exist_ok=True)
    url = f"sqlite:///{args.folder.resolve() / 'studies.db'}"
    print(f"three past studies, {args.past_trials} trials each", flush=True)
    store_past_studies(url, args.past_trials)
    for name in {"new", "alone"} & set(optuna.get_all_study_names(url)):
        optuna.delete_study(study_name=name, storage=url)  # of an earlier run

    ray.init(
        address=args.address,
        log_to_driver=False,
        logging_level=logging.ERROR,
        runtime_env={"env_vars": {"PYTHONPATH": str(Path(__file__).parent)}},  # for _boosting
    )
    with_past = search("new", url, load_tasks(url, "friedman-*"), args)
    without = search("alone", url, [], args)
    ray.shutdown()

    print("\norigin of the configurations, and weights of the past studies:")
    for record in transfer_history(with_past):
        print(f"  {record.number:2d}  {record.origin:11s}  {record.weights}")
    print("R² and kB on the front of the study with past studies:")
    for trial in sorted(with_past.best_trials, key=lambda t: t.values):
        print(f"  {trial.values[0]:.3f}  {trial.values[1]:6.1f}  {trial.params}")
    print_gain([with_past], [without])


if __name__ == "__main__":
    main()
