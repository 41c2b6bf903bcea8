"""JSON at Armada's door: the paths of its gateway, what is read and written, and what is refused in which words."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.api.armada._generated import binoculars, event, job, submit
from holdfast.api.armada._generated.pool import PROTOCOL
from holdfast.api.armada.calls import SERVICES
from holdfast.api.armada.gateway_json import as_json, dump, read, read_query
from holdfast.api.armada.routes import PREFIX, ROUTES, matching
from holdfast.api.connect.refusals import Rejected

PATHS = Path(__file__).parents[1] / "data" / "armada" / "paths.txt"


def test_the_paths_are_those_that_upstream_annotates() -> None:
    lines = [line.split() for line in PATHS.read_text().splitlines() if not line.startswith("#")]
    ours = [[one.method, one.path, f"{one.service}/{one.rpc}", "*" if one.has_body else "-"] for one in ROUTES]
    assert sorted(ours) == sorted(lines)
    assert all(one.path.startswith(PREFIX) for one in ROUTES)


def test_what_a_path_has_is_a_field_of_its_message() -> None:
    for one in ROUTES:
        if one.service in SERVICES:
            method = PROTOCOL.service(one.service).methods_by_name[one.rpc]
            names = {part[1:-1] for part in one.path.split("/") if part.startswith("{")}
            assert names <= set(method.input_type.fields_by_name), one


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/v1/queue/ml", {"PUT": "UpdateQueue", "DELETE": "DeleteQueue", "GET": "GetQueue"}),
        ("/v1/queue", {"POST": "CreateQueue"}),
        ("/v1/queue/", {}),
        ("/v1/queue/ml/", {}),
        ("/v1/queues/active", {"POST": "GetActiveQueues"}),
        ("/v1/job-set/ml/a%2Fb%20c", {"POST": "GetJobSetEvents"}),
        ("/v1/job-set/ml/a/b", {}),
        ("/v1/Job/submit", {}),
        ("/v1/", {}),
        ("", {}),
    ],
)
def test_a_path_is_found_by_its_parts(path: str, found: dict[str, str]) -> None:
    assert {method: route.rpc for method, (route, _) in matching(path).items()} == found


def test_fields_in_a_path_may_have_anything_escaped() -> None:
    assert matching("/v1/job-set/m%6c/a%2Fb%20c%3F")["POST"][1] == {"queue": "ml", "id": "a/b c?"}


WHOLE = {
    "queue": "ml",
    "jobSetId": "s",
    "jobRequestItems": [
        {
            "priority": 2.5,
            "namespace": "default",
            "clientId": "c1",
            "labels": {"a": "b"},
            "podSpec": {
                "terminationGracePeriodSeconds": 5,
                "containers": [
                    {
                        "name": "main",
                        "command": ["sh", "-c", "exit 1"],
                        "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                    }
                ],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
            "services": [{"type": "Headless", "ports": [80]}],
        }
    ],
}


def test_what_is_read_is_written_again() -> None:
    message = submit.JobSubmitRequest()
    read(json.dumps(WHOLE).encode(), message)
    assert json.loads(dump(as_json(message))) == WHOLE


def test_names_are_read_whatever_their_case_and_what_no_field_is_for_is_left_out() -> None:
    message = submit.JobSubmitRequest()
    read(b'{"QUEUE": "ml", "jobsetid": "s", "job_set_id": "x", "nope": [1], "jobRequestItems": null}', message)
    assert (message.queue, message.job_set_id, len(message.job_request_items)) == ("ml", "s", 0)


@pytest.mark.parametrize("text", [b"", b"  \n", b"null", b"{}"])
def test_nothing_is_an_empty_message(text: bytes) -> None:
    message = submit.Queue()
    read(text, message)
    assert message == submit.Queue()


def test_numbers_may_be_texts_and_enumerations_names_numbers_or_short_names() -> None:
    options = binoculars.LogRequest()
    read(
        b'{"podNumber": "3", "logOptions": {"tailLines": "9007199254740993", "sinceTime": "2026-01-02T03:04:05.5Z"}}',
        options,
    )
    assert (options.pod_number, options.log_options.tailLines) == (3, 9007199254740993)
    assert (options.log_options.sinceTime.seconds, options.log_options.sinceTime.nanos) == (1767323045, 500_000_000)
    policy = submit.RetryPolicy()
    read(b'{"rules": [{"action": "retry"}, {"action": "RETRY_ACTION_FAIL"}, {"action": 2}]}', policy)
    assert [one.action for one in policy.rules] == [2, 1, 2]
    assert as_json(policy) == {"rules": [{"action": "Retry"}, {"action": "Fail"}, {"action": "Retry"}]}


def test_null_in_a_list_or_a_map_is_what_go_takes_it_for() -> None:
    message = submit.Queue()
    read(
        b'{"userOwners": ["a", null], "labels": {"k": null}, "permissions": [null], "resourceLimits": {"x": null}}',
        message,
    )
    assert (list(message.user_owners), dict(message.labels), len(message.permissions)) == (["a", ""], {"k": ""}, 1)
    assert dict(message.resource_limits) == {"x": 0.0}
    wanted = submit.JobSetFilter()
    read(b'{"states": [null, 2]}', wanted)
    assert list(wanted.states) == [0, 2]


def test_states_are_names_and_moments_texts() -> None:
    answer = job.JobStatusResponse(job_states={"a": submit.RUNNING, "b": submit.QUEUED})
    assert as_json(answer) == {"jobStates": {"a": "RUNNING", "b": "QUEUED"}}
    message = event.EventStreamMessage(id="1:0:0:true")
    message.message.queued.job_id = "a"
    message.message.queued.created.FromNanoseconds(1_000_000_500_000_000)
    assert json.loads(dump(as_json(message))) == {
        "id": "1:0:0:true",
        "message": {"queued": {"jobId": "a", "created": "1970-01-12T13:46:40.500000Z"}},
    }


def test_half_characters_and_bytes_that_are_none_are_replaced() -> None:
    message = submit.Queue()
    read(b'{"name": "a\\ud800b", "userOwners": ["\xff"], "labels": {"\\udfff": "\\ud83d\\ude00"}}', message)
    assert (message.name, message.user_owners[0], dict(message.labels)) == ("a?b", "\ufffd", {"?": "\U0001f600"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"{", "invalid JSON: "),
        (b"\x00", "invalid JSON: "),
        (b'{"queue": NaN}', "invalid JSON: NaN"),
        (b"[" * 100_000, "invalid JSON: "),
        (b'{"x": ' + b"9" * 5000 + b"}", "invalid JSON: "),
        (b"[]", "json: cannot unmarshal array into Go value of type api.JobSubmitRequest"),
        (b'"x"', "json: cannot unmarshal string into Go value of type api.JobSubmitRequest"),
        (b'{"queue": 1}', "json: cannot unmarshal number 1 into Go struct field JobSubmitRequest.queue of type string"),
        (
            b'{"jobRequestItems": {}}',
            "json: cannot unmarshal object into Go struct field JobSubmitRequest.jobRequestItems",
        ),
        (
            b'{"jobRequestItems": [{}, {"priority": "high"}]}',
            "json: cannot unmarshal string into Go struct field JobSubmitRequest.jobRequestItems.priority of",
        ),
        (b'{"jobRequestItems": [{"priority": true}]}', "json: cannot unmarshal bool into"),
        (b'{"jobRequestItems": [{"labels": ["a"]}]}', "json: cannot unmarshal array into"),
        (b'{"jobRequestItems": [{"labels": {"a": 1}}]}', "json: cannot unmarshal number 1 into"),
        (b'{"jobRequestItems": [{"services": [{"type": "Nope"}]}]}', "no ServiceType of type Nope"),
        (b'{"jobRequestItems": [{"services": [{"type": 99}]}]}', "no ServiceType of type 99"),
        (b'{"jobRequestItems": [{"services": [{"ports": [-1]}]}]}', "json: cannot unmarshal number -1 into"),
        (b'{"jobRequestItems": [{"services": [{"ports": [1.5]}]}]}', "json: cannot unmarshal number 1.5 into"),
        (b'{"jobRequestItems": [{"services": [{"ports": [4294967296]}]}]}', "json: cannot unmarshal number"),
        (
            b'{"jobRequestItems": [{"podSpec": {"containers": [{"resources": {"limits": {"cpu": []}}}]}}]}',
            "json: cannot unmarshal array into",
        ),
        (b'{"jobRequestItems": [{"priority": 1e999}]}', "json: cannot unmarshal number inf into"),
    ],
)
def test_bad_json_is_refused_in_words(text: bytes, told: str) -> None:
    with pytest.raises(Rejected) as refused:
        read(text, submit.JobSubmitRequest())
    assert refused.value.message.startswith(told)
    assert refused.value.code.name == "INVALID_ARGUMENT"


def test_all_that_is_wrong_is_told_with_its_places_and_the_first_is_the_message() -> None:
    with pytest.raises(Rejected) as refused:
        read(b'{"queue": 1, "jobRequestItems": [{}, {"priority": "x", "labels": {"k": 3}}]}', submit.JobSubmitRequest())
    paths = [one.path for one in refused.value.problems]
    assert sorted(paths) == ["jobRequestItems[1].labels['k']", "jobRequestItems[1].priority", "queue"]
    assert refused.value.message == refused.value.problems[0].message


def test_a_moment_or_bytes_that_are_none_are_refused() -> None:
    for text in (
        b'{"logOptions": {"sinceTime": "yesterday"}}',
        b'{"logOptions": {"sinceTime": "2026-01-01T00:00:00"}}',
    ):
        with pytest.raises(Rejected, match="is no moment of RFC 3339"):
            read(text, binoculars.LogRequest())
    with pytest.raises(Rejected, match="illegal base64 data"):
        read(b'{"compressedQueueOwnershipUserGroups": "%%%"}', submit.Job())


def test_a_query_fills_what_there_is_and_refuses_what_is_no_number() -> None:
    message = submit.StreamingQueueGetRequest()
    read_query([("num", "3"), ("nope", "x")], message)
    assert message.num == 3
    for text in ("x", "-1", "9" * 30, "1.0", ""):
        with pytest.raises(Rejected, match="type mismatch, parameter: num"):
            read_query([("num", text)], message)


MESSAGES: tuple[Any, ...] = (
    submit.JobSubmitRequest,
    submit.RetryPolicy,
    submit.Queue,
    submit.JobSetCancelRequest,
    binoculars.LogRequest,
    job.JobStatusRequest,
)


def names(kind: Any, known: set[str]) -> set[str]:  # noqa: ANN401 - a descriptor
    """Return what fields are called in a message and in all that it may have."""
    if kind.full_name not in known:
        known.add(kind.full_name)
        for field in kind.fields:
            known.add(field.json_name)
            if field.message_type is not None:
                names(field.message_type, known)
    return known


NAMES = sorted({name for kind in MESSAGES for name in names(kind.DESCRIPTOR, set()) if "." not in name})
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=20,
)
WHOLES = st.one_of(
    *[
        st.tuples(
            st.just(kind),
            st.fixed_dictionaries({}, optional={one.json_name: ANY for one in kind.DESCRIPTOR.fields}) | ANY,
        )
        for kind in MESSAGES
    ]
)


@given(WHOLES)
def test_whatever_is_sent_is_read_or_refused_and_what_is_read_is_read_again_as_it_is_written(
    sent: tuple[Any, object],
) -> None:
    kind, value = sent
    message, again = kind(), kind()
    with suppress(Rejected):
        read(json.dumps(value).encode(), message)
        text = dump(as_json(message))
        json.loads(text, parse_constant=pytest.fail)
        if b'"seconds"' not in text and b'"sinceTime"' not in text:
            read(text, again)
            assert again == message
