"""What a run says of warnings and outages: each once."""

from __future__ import annotations

from metatpe.tuning.remarks import Remarks


def test_a_warning_is_said_once() -> None:
    lines: list[str] = []
    remarks = Remarks(lines.append, 60)
    for text in ("a", "b", "a"):
        remarks.once(text)
    assert lines == ["a", "b"]


def test_an_outage_that_many_notice_is_said_once_and_ends_with_the_last() -> None:
    lines: list[str] = []
    remarks = Remarks(lines.append, 60)
    for who in (None, 1, 2):
        remarks.wait("gone.", who)
    assert lines == ["gone. Trying again for 60 seconds; results are kept."]
    remarks.resume()
    remarks.forget(1)  # this worker was killed
    assert len(lines) == 1
    remarks.resume(2)
    assert lines[1:] == ["the storage answers again."]
    remarks.wait("gone.", 3)  # it noticed late
    remarks.resume(3)
    assert len(lines) == 2
