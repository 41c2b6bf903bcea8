"""What a call of Armada's door has answered the next call on any service sees; and conditions of real programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.armada_stage import door

if TYPE_CHECKING:
    from tests.e2e.armada_stage import DoorServer

__all__ = ["door"]


@pytest.mark.slow
def test_what_one_call_has_answered_the_next_sees_whatever_the_service(door: DoorServer) -> None:
    stock = door.open()
    wrong = stock(
        """
        import time
        wrong = []
        def check(what, holds):
            if not holds: wrong.append(what)
        for n in range(15):
            queue, job_set = f"q{n}", f"set {n}"
            client.create_queue(client.create_queue_request(name=queue, priority_factor=1.0))
            check("queue", client.get_queue(queue).name == queue)
            [good, bad] = submitted(queue, job_set, item("true"), item("sh", "-c", "echo oops; exit 3"))
            check("status", set(states([good, bad])) == {good, bad} and "UNKNOWN" not in states([good, bad]).values())
            check("details", set(client.get_job_details([good, bad]).job_details) == {good, bad})
            over = 0
            for raw in client.get_job_events_stream(queue, job_set):
                one = client.unmarshal_event_response(raw)
                kind, job = one.type.name, one.message.job_id
                found = client.get_job_details([job]).job_details[job]
                if kind in ("pending", "running"):
                    check(f"{kind}: runs", len(found.job_runs) == 1)
                    run = found.latest_run_id
                    check(f"{kind}: run", run in client.get_job_run_details([run]).job_run_details)
                if kind in ("succeeded", "failed"):
                    check(f"{kind}: status", states([job])[job] == kind.upper())
                    check(f"{kind}: errors", bool(client.get_job_errors([job]).job_errors[job]) is (kind == "failed"))
                    check(f"{kind}: run", found.job_runs[0].HasField("finished_ts"))
                    over += 1
                if over == 2:
                    break
            [late] = submitted(queue, job_set, item("sleep", "1000"))
            client.cancel_jobs(queue, job_set, late)
            for raw in client.get_job_events_stream(queue, job_set, raw.id):
                one = client.unmarshal_event_response(raw)
                if one.type.name == "cancelled":
                    check("cancelled: status", states([late])[late] == "CANCELLED")
                    break
        done(wrong)
        """
    )
    assert wrong == []


@pytest.mark.slow
def test_a_deadline_a_memory_limit_and_a_job_too_large_are_told_as_what_they_are(door: DoorServer) -> None:
    stock = door.open()
    events, late, fat = stock(
        """
        a_queue()
        late = item("sleep", "1000")
        late.pod_spec.activeDeadlineSeconds = 1
        eats = "import sys; x = []; [x.append(bytearray(1 << 20)) for _ in range(10 ** 6)]"
        fat = item(sys.executable, "-c", eats)
        late, fat = submitted("ml", "s", late, fat)
        done([told("ml", "s", 2), late, fat])
        """
    )
    failed = {of: one for _, kind, of, one in events if kind == "failed"}
    assert failed[late]["cause"] == "DeadlineExceeded"
    assert failed[fat]["cause"] == "OOM"
    assert [kind for _, kind, of, _ in events if of == late][-2:] == ["running", "failed"]
