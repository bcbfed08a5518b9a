"""Ask and tell: get configurations in batches, and evaluate them elsewhere.

    pip install metatpe scikit-learn
    python examples/ask_and_tell.py

A queue, a cluster or a laboratory evaluates several configurations at once and returns the results
later. Ask for as many configurations as you need, and tell the results in any order. The sampler
knows which ones are still being evaluated and does not suggest them again. The past studies are
three studies in a SQLite file. Every search is run with and without them.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import optuna
from _boosting import DIRECTIONS, SPACE, evaluate, store_past_studies
from _gain import print_gain

from metatpe import Task, TransferSampler, load_tasks, transfer_history


def search(n_batches: int, batch_size: int, sources: list[Task], seed: int) -> optuna.Study:
    """Tune in batches, with or without past tasks."""
    sampler = TransferSampler(sources, seed=seed)
    study = optuna.create_study(directions=DIRECTIONS, sampler=sampler)
    for _ in range(n_batches):
        batch = [study.ask(SPACE) for _ in range(batch_size)]
        for trial in reversed(batch):  # answers come in any order
            study.tell(trial, evaluate(trial.params))
    return study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batches", type=int, default=5, help="of each new study")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--past-trials", type=int, default=40, help="of each past study")
    parser.add_argument(
        "--seeds", type=int, default=3, help="searches with and without past studies"
    )
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'studies.db'}"
        print(f"three past studies, {args.past_trials} trials each", flush=True)
        store_past_studies(url, args.past_trials)
        sources = load_tasks(url, "friedman-*")

    with_past, without = [], []
    for seed in range(args.seeds):
        print(f"new study: diabetes, seed {seed}, with and without past studies", flush=True)
        with_past.append(search(args.batches, args.batch_size, sources, seed))
        without.append(search(args.batches, args.batch_size, [], seed))

    print("\nfinal weights of the past studies:")
    print(" ", [r.weights for r in transfer_history(with_past[0]) if r.weights][-1:])
    print("R² and kB on the front of the first study with past studies:")
    for trial in sorted(with_past[0].best_trials, key=lambda t: t.values):
        print(f"  {trial.values[0]:.3f}  {trial.values[1]:6.1f}  {trial.params}")
    print_gain(with_past, without)


if __name__ == "__main__":
    main()
