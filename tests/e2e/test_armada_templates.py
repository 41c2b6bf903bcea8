"""Labels and annotations of Armada's jobs that have ``{JobId}`` in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e.armada_stage import door

if TYPE_CHECKING:
    from tests.e2e.armada_stage import DoorServer

__all__ = ["door"]


def test_each_of_many_equal_jobs_has_its_own_id_in_its_labels_and_annotations(door: DoorServer) -> None:
    stock = door.open()
    ids, shown, again = stock(
        """
        a_queue()
        def wanted(client_id):
            return item("true", labels={"link": "job-{JobId}"}, annotations={"a": "http://x/{JobId}?{{JobId}}"},
                        client_id=client_id)
        ids = submitted("ml", "s", wanted("1"), wanted("2"), wanted("3"))
        events = [one[3] for one in told("ml", "s", 3) if one[1] == "submitted"]
        shown = {one["jobId"]: [one["job"]["labels"], one["job"]["annotations"]] for one in events}
        done([ids, shown, submitted("ml", "s", wanted("1"), wanted("3"))])
        """
    )
    assert shown == {one: [{"link": f"job-{one}"}, {"a": f"http://x/{one}?JobId"}] for one in ids}
    assert again == [ids[0], ids[2]]
    with door.client() as client:
        assert [job.id for job in client.jobs(labels={"link": f"job-{ids[1]}"})] == [ids[1]]
