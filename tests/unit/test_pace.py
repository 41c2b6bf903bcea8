"""What is told of how fast a run comes on."""

from __future__ import annotations

import pytest

from holdfast.engines.process.shim.supervisor.pace import FirstReport


@pytest.mark.parametrize(
    ("reports", "told"),
    [
        ([(0.0, "0/100"), (10.0, "30/100")], "30/100 (3.0/s, 23s left)"),
        ([(0.0, "600/1000"), (10.0, "610/1000 loss=0.3")], "610/1000 loss=0.3 (1.0/s, 6m30s left)"),
        ([(0.0, "1/10"), (100.0, "2/10")], "2/10 (36.0/h, 13m20s left)"),
        ([(0.0, "0/1000000"), (10.0, "5/1000000")], "5/1000000 (30.0/min, 23d3h left)"),
        ([(0.0, "9/10"), (10.0, "1/10"), (20.0, "2/10")], "2/10 (6.0/min, 1m20s left)"),
        ([(0.0, "0/100"), (1.0, "30/100")], "30/100"),
        ([(0.0, "0/100"), (10.0, "100/100")], "100/100"),
        ([(0.0, "0/100"), (10.0, "0/100")], "0/100"),
        ([(0.0, "0/100"), (10.0, "nearly done")], "nearly done"),
        ([(0.0, "2024/05/06"), (10.0, "2024/05/07")], "2024/05/07"),
        ([(0.0, "1/0"), (10.0, "2/0")], "2/0"),
        ([(0.0, "0/1" + "0" * 30), (10.0, "1/1" + "0" * 30)], "1/1" + "0" * 30),
    ],
)
def test_a_report_of_steps_gets_its_rate_and_the_time_left(reports: list[tuple[float, str]], told: str) -> None:
    pace = FirstReport()
    assert [pace.annotate(line, at) for at, line in reports][-1] == told
