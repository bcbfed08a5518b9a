"""What importing costs, beside importing Optuna.

    python benchmarks/import_time.py --repeats 11

Each statement is timed in a process of its own, in turn. Printed are medians, and what each takes
beyond Optuna alone. A name of metatpe is imported when it is first used, so that the samplers
have lines of their own.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

STATEMENTS = {
    "import optuna": "import optuna",
    "import metatpe": "import optuna, metatpe",
    "from metatpe import MetaTPESampler": "import optuna; from metatpe import MetaTPESampler",
    "from metatpe import TransferSampler": "import optuna; from metatpe import TransferSampler",
    "metatpe --version": "from metatpe.cli import app",
    "metatpe tune": "import metatpe.cli.tune",
}


def seconds(statement: str) -> float:
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return float(result.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=11)
    args = parser.parse_args()
    times: dict[str, list[float]] = {label: [] for label in STATEMENTS}
    for _ in range(args.repeats):
        for label, statement in STATEMENTS.items():
            times[label].append(seconds(statement))
    alone = statistics.median(times["import optuna"])
    for label, found in times.items():
        median = statistics.median(found)
        print(f"{label:<38}{median:6.3f} s{median - alone:+8.3f} s beyond Optuna")


if __name__ == "__main__":
    main()
