"""Plots and a note about the transfer, stored with the study, where optuna-dashboard shows them.

The time for updates is bounded: after an update that took c seconds, the next one starts no
earlier than c / SHARE seconds after the start of the last one. So all updates but the last take at
most the fraction SHARE of the time of a run.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial

from metatpe.extras import require
from metatpe.past.read.storage import masked
from metatpe.study.access import storage_of
from metatpe.study.record import REST, TARGET, transfer_history
from metatpe.text import visible

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_logger = logging.getLogger(__name__)
SHARE = 0.05
_HEIGHT = 440  # of a card of the dashboard
_MAX_PAST = 10  # studies that are read for a note

# Definitions of links that nothing refers to: no Markdown shows them.
_BEGIN, _END = "[//]: # (metatpe: written anew from here)", "[//]: # (metatpe: to here)"
_OURS = re.compile(re.escape(_BEGIN) + ".*?" + re.escape(_END), flags=re.DOTALL)


class Pace:
    """Decides when the next update may start."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = clock()

    @property
    def wait(self) -> float:
        """Seconds until then; 0 if it may start at once."""
        return max(0.0, self._next - self._clock())

    @contextlib.contextmanager
    def update(self) -> Iterator[None]:
        """Measure the time of an update, and delay the next one accordingly."""
        began = self._clock()
        try:
            yield
        finally:
            self._next = began + (self._clock() - began) / SHARE


class TransferCallback:
    """Keeps plots and a note about the transfer in optuna-dashboard up to date (extra `viz`).

    An update follows each trial, or is delayed if updates would take more than a twentieth of the
    time of the run; the update after the last trials comes a little later, at the latest when
    Python ends. The text that users have written into the note of the study is kept. An update
    that fails is logged and does not stop the run.

    If several processes tune one study, use the callback in only one of them. If two processes
    write at the same time, the dashboard shows a mixture until the next update.

    Example:
        >>> study.optimize(objective, n_trials=1, callbacks=[TransferCallback()])
    """

    def __init__(self) -> None:
        require("TransferCallback", "viz", "optuna_dashboard", "plotly")
        self._pace = Pace()
        self._is_busy = threading.Lock()  # held while updating
        self._lock = threading.Lock()  # of the two below
        self._waiting: dict[str, Study] = {}
        self._timer: threading.Timer | None = None

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Update the plots and the note of the study, now or later."""
        with self._lock:
            self._waiting[study.study_name] = study
        if self._is_busy.acquire(blocking=False):
            try:
                self._update_if_due()
            finally:
                self._is_busy.release()
        self._remind()

    def flush(self) -> None:
        """Update everything now; only needed if it cannot wait."""
        with self._is_busy:
            self._update()

    def _remind(self) -> None:
        """Schedule the update of waiting studies, at the latest when Python ends."""
        with self._lock:
            if self._waiting and self._timer is None:
                self._timer = threading.Timer(self._pace.wait, self._catch_up)
                self._timer.daemon = True  # Python does not wait for it
                self._timer.start()
                atexit.register(self.flush)

    def _catch_up(self) -> None:
        with self._is_busy:
            with self._lock:
                self._timer = None
            self._update_if_due()
        self._remind()

    def _update_if_due(self) -> None:
        if not self._pace.wait:
            self._update()

    def _update(self) -> None:
        with self._lock:
            studies, self._waiting = list(self._waiting.values()), {}
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        atexit.unregister(self.flush)
        if studies:
            with self._pace.update():
                for study in studies:
                    _publish_or_warn(study)


def _publish_or_warn(study: Study) -> None:
    try:
        publish(study)
    except Exception as error:  # whatever it is, the run is worth more than its plots
        _logger.warning(
            "the plots of study %r were not updated: %s",
            study.study_name,
            visible(masked(str(error))),
        )


def publish(study: Study) -> bool:
    """Write plots and a note into a study; return whether there was anything new to write.

    The note comes last: where it is up to date, the plots are too.
    """
    from optuna_dashboard import get_note, save_note, save_plotly_graph_object

    from metatpe import viz
    from metatpe.report import note

    if not transfer_history(study):
        return False
    known = get_note(study)
    ours = f"{_BEGIN}\n\n{note(study, _past_of(study))}\n{_END}"
    wanted = _OURS.sub(lambda _: ours, known) if _OURS.search(known) else f"{known}\n\n{ours}"
    if wanted == known:
        return False
    figures = {
        "metatpe-progress": viz.plot_hypervolume(study),
        "metatpe-weights": _in_two_panels(viz.plot_task_weights(study)),
        "metatpe-importances": viz.plot_importances(study),
    }
    for name, figure in figures.items():
        figure.update_layout(height=_HEIGHT)
        save_plotly_graph_object(study, figure, graph_object_id=name)
    save_note(study, wanted.lstrip())
    return True


def _in_two_panels(figure: Figure) -> Figure:
    """Return the plot of weights without the panel of shares: a card has no room for three."""
    figure.data = [trace for trace in figure.data if trace.yaxis != "y2"]
    figure.update_layout(
        yaxis={"domain": [0.52, 1.0]},
        yaxis2={"visible": False},
        xaxis2={"visible": False},
        yaxis3={"domain": [0.0, 0.42]},
    )
    return figure


def _past_of(study: Study) -> list[Study]:
    """Return the past studies with the largest weights on record that the storage still has."""
    total: Counter[str] = Counter()
    for record in transfer_history(study):
        total.update(dict.fromkeys(record.sources, 0.0))
        total.update({n: w for n, w in record.weights.items() if n not in (TARGET, REST)})
    storage = storage_of(study)
    stored = {*optuna.get_all_study_names(storage)} - {study.study_name}
    names = [name for name, _ in total.most_common() if name in stored][:_MAX_PAST]
    return [optuna.load_study(study_name=name, storage=storage) for name in names]
