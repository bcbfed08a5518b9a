"""The examples run as they are."""

import subprocess
import sys
from pathlib import Path

import optuna
import pytest
from studies import configurations

from metatpe import transfer_history

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.slow
def test_ray_tunes_two_objectives_with_a_past(tmp_path: Path) -> None:
    pytest.importorskip("ray.tune", reason="needs the extra ray", exc_type=ImportError)
    result = subprocess.run(
        [
            *(sys.executable, str(EXAMPLES / "ray_tune.py")),
            *("--trials", "8", "--at-once", "2", "--folder", str(tmp_path)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert "8 trials, 0 errors, best:" in result.stdout
    study = optuna.load_study(study_name="new", storage=f"sqlite:///{tmp_path / 'studies.db'}")
    assert [t.state.name for t in study.trials] == ["COMPLETE"] * 8
    assert len(set(configurations(study))) == 8
    history = transfer_history(study)
    assert [record.origin for record in history].count("warm_start") == 5
    assert set(history[-1].weights) == {"target", "past-0.2", "past-0.5"}
