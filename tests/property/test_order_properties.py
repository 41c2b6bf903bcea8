"""The order in which what files describe is sent, for any jobs, arrays and job sets that wait for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.manifests import Manifest
from holdfast.cli.nouns import Noun
from holdfast.cli.submission.order import in_order
from holdfast.dialects.documents import Document

if TYPE_CHECKING:
    from collections.abc import Sequence

NATIVE, UPSTREAM = "holdfast.dev/v1", "jobset.x-k8s.io/v1alpha2"
FORMS = st.sampled_from(["job", "array", "Job", "JobSet", "native set"])


def written(form: str, place: int, awaited: Sequence[str]) -> Manifest:
    name, words = f"n{place}", list(awaited)
    annotations = {"holdfast.dev/depends-on": ", ".join(words)} if words else {}
    forms: dict[str, dict[str, Any]] = {
        "job": {"name": name, "command": ["x"], "dependsOn": words},
        "array": {"name": name, "command": ["x"], "array": {"indices": "0-1"}, "dependsOn": words},
        "Job": {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "annotations": annotations}},
        "JobSet": {"apiVersion": UPSTREAM, "kind": "JobSet", "metadata": {"name": name, "annotations": annotations}},
        "native set": {
            "apiVersion": NATIVE,
            "kind": "JobSet",
            "metadata": {"name": name},
            "spec": {"dependsOn": words},
        },
    }
    return Manifest("one.yaml", Document(forms[form], {}))


@st.composite
def files(draw: st.DrawFn) -> tuple[list[Manifest], dict[str, set[str]]]:
    """Draw manifests in any order, and what each waits for: always some of those before it in another order."""
    forms = draw(st.lists(FORMS, max_size=12))
    awaited = {
        f"n{place}": draw(st.sets(st.sampled_from(range(place)), max_size=3) if place else st.just(set()))
        for place in range(len(forms))
    }
    names = {name: {f"n{other}" for other in others} for name, others in awaited.items()}
    found = [written(form, place, sorted(names[f"n{place}"])) for place, form in enumerate(forms)]
    return draw(st.permutations(found)), names


@given(files())
def test_whatever_something_waits_for_is_sent_before_it_or_with_it(
    drawn: tuple[list[Manifest], dict[str, set[str]]],
) -> None:
    manifests, awaited = drawn
    sent: set[str] = set()
    for part in in_order(manifests):
        jobs = {manifests[place].name for place in part if manifests[place].noun == Noun.JOB}
        for place in part:
            one = manifests[place]
            # The sets of a part are sent before its jobs, which are sent together.
            with_it = jobs if one.noun == Noun.JOB else set()
            sets = {manifests[other].name for other in part} if one.noun == Noun.JOB else set()
            assert awaited[one.name] <= sent | with_it | sets
        sent |= {manifests[place].name for place in part}
    assert sorted(sent) == sorted(one.name for one in manifests)


@given(st.lists(st.sampled_from(["job", "JobSet"]), min_size=2, max_size=6))
def test_what_waits_in_a_circle_is_sent_once_for_the_server_to_refuse(forms: list[str]) -> None:
    ring = [written(form, place, [f"n{(place + 1) % len(forms)}"]) for place, form in enumerate(forms)]
    parts = list(in_order(ring))
    assert sorted(place for part in parts for place in part) == list(range(len(forms)))
