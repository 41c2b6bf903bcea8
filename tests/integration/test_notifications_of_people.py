"""Who may read which notifications: everybody those about their own work, operators all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access import Principal
from holdfast.domain.notifications.notification import Notification, OutcomeReport
from holdfast.errors import Forbidden, NotFound
from holdfast.ports.notifications import NotificationFilter
from holdfast.ports.store import Changes, Submission
from holdfast.service.admission.records import new_job
from tests.contract.conftest import place, store
from tests.integration.test_rights_of_people import ANN, ARRAY, JOB, People, people
from tests.reading import read_job_mapping

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.ports.store import Store

__all__ = ["people", "place", "store"]


def _told(people: People, *about: str) -> None:
    notifications = [
        Notification(
            id=f"msg_{one}",
            to="ops",
            created_at=1.0,
            report=OutcomeReport(event="job.failed", kind="job", id=one, name=one, at=1.0, state="Failed"),
        )
        for one in about
    ]
    people.lab.store.commit(Changes(notifications=notifications))


def _ids(client: Client) -> set[str]:
    return {one.id for one in client.notifications()}


def test_everybody_reads_those_about_their_own_work_and_operators_all(people: People) -> None:
    hers, sweep = people.ann.submit(JOB).id, people.ann.submit_array(ARRAY).id
    his = people.ben.submit({**JOB, "name": "other"}).id
    _told(people, hers, sweep, his, "gone")
    assert _ids(people.ann) == {f"msg_{hers}", f"msg_{sweep}"}
    assert _ids(people.ben) == {f"msg_{his}"}
    assert _ids(people.guest) == set()
    assert _ids(people.ops) == _ids(people.lab_client) == {f"msg_{one}" for one in (hers, sweep, his, "gone")}
    assert people.ann.notification(f"msg_{hers}").subject_id == hers
    for client, key in ((people.ben, f"msg_{hers}"), (people.guest, f"msg_{hers}"), (people.ann, "msg_gone")):
        with pytest.raises(NotFound, match="you have no notification with the id"):
            client.notification(key)
    with pytest.raises(Forbidden, match="this needs the role operator"):
        people.ann.replay(f"msg_{hers}")
    assert [one.id for one in people.ann.notifications(about=his)] == []


def test_an_account_that_was_made_again_reads_nothing_of_the_one_before(store: Store) -> None:
    job = new_job(read_job_mapping({"name": "one", "command": ["true"]}), "j1", 1.0, ANN)
    store.submit(Submission([job]))
    report = OutcomeReport(event="job.failed", kind="job", id="j1", name="one", at=1.0, state="Failed")
    store.commit(Changes(notifications=[Notification(id="m", to="ops", created_at=1.0, report=report)]))
    for who, found in ((ANN, 1), (Principal("ann"), 1), (Principal("ann", uid=7), 0), (Principal("ben", uid=1001), 0)):
        assert len(store.notifications(NotificationFilter(of=who), limit=9)) == found


def test_nobody_reads_in_them_what_a_program_printed_whose_log_they_may_not_read(people: People) -> None:
    hers, sweep = people.ann.submit(JOB).id, people.ann.submit_array(ARRAY).id
    told = [
        Notification(
            id=f"msg_{one}",
            to="ops",
            created_at=1.0,
            report=OutcomeReport(
                event="job.failed",
                kind="job",
                id=one,
                name=one,
                at=1.0,
                state="Failed",
                reason="matched rule: Fail: exit code 3: PRINTED",
                failure="exit code 3: PRINTED",
            ),
        )
        for one in (hers, sweep, "gone")
    ]
    people.lab.store.commit(Changes(notifications=told))
    people.given({"access": {"operator": ["user:ops"], "viewer": ["user:guest"]}, "othersSee": "everything"})
    readers = {"ann": (people.ann, {hers, sweep}), "ops": (people.ops, {hers, sweep})}
    readers |= {"lab": (people.lab_client, {hers, sweep, "gone"})}
    _require_quotes(readers)
    people.given({"access": {"operator": ["user:ops"], "viewer": ["user:guest"]}, "othersSee": "details"})
    _require_quotes({**readers, "ops": (people.ops, set())})
    read = people.ops.notification(f"msg_{hers}").model_dump_json()
    assert "exit code 3" in read
    assert "PRINTED" not in read, "nor in what would be sent"


def _require_quotes(readers: dict[str, tuple[Client, set[str]]]) -> None:
    for name, (client, quoted) in readers.items():
        shown = {one.subject_id: client.notification(one.id).model_dump_json() for one in client.notifications()}
        assert {key for key, text in shown.items() if "PRINTED" in text} == quoted, name
        listed = {one.subject_id for one in client.notifications() if "PRINTED" in one.model_dump_json()}
        assert listed <= quoted, name
