"""All use cases over one store, as given to an API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.service.api.rehearsal import Rehearsal
from holdfast.service.apply import Applier
from holdfast.service.audit import Audit
from holdfast.service.categories import Categories
from holdfast.service.control import Control
from holdfast.service.events import EventLog
from holdfast.service.explain import Explainer
from holdfast.service.jobsets.control import SetControl
from holdfast.service.jobsets.explain import SetExplainer
from holdfast.service.jobsets.sets import JobSets
from holdfast.service.logs import Logs
from holdfast.service.policies import Policies
from holdfast.service.query import Queries
from holdfast.service.queues import Queues
from holdfast.service.settings import Settings
from holdfast.service.submit import Submitter

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.ports.clock import Clock, Ids
    from holdfast.ports.logs import LogReader
    from holdfast.ports.store import Store


@dataclass(frozen=True, slots=True)
class UseCases:
    """Everything an API may call."""

    store: Store
    submitter: Submitter
    applier: Applier
    rehearsal: Rehearsal
    control: Control
    queries: Queries
    explainer: Explainer
    job_sets: JobSets
    set_control: SetControl
    set_explainer: SetExplainer
    logs: Logs
    policies: Policies
    queues: Queues
    categories: Categories
    settings: Settings
    events: EventLog
    audit: Audit


def use_cases_over(store: Store, clock: Clock, ids: Ids, logs: LogReader, *, make_room: Callable[[], bool]) -> UseCases:
    """Make the use cases over one store; ``make_room`` frees the reserve on a full disk, for cancelling."""
    explainer, job_sets = Explainer(store), JobSets(store, clock, ids)
    submitter, control = Submitter(store, clock, ids), Control(store, clock, make_room=make_room)
    return UseCases(
        store=store,
        submitter=submitter,
        applier=Applier(submitter, control),
        rehearsal=Rehearsal(store, clock, ids),
        control=control,
        queries=Queries(store, explainer),
        explainer=explainer,
        job_sets=job_sets,
        set_control=SetControl(store, clock),
        set_explainer=SetExplainer(job_sets),
        logs=Logs(store, logs),
        policies=Policies(store),
        queues=Queues(store),
        categories=Categories(store),
        settings=Settings(store),
        events=EventLog(store),
        audit=Audit(store),
    )
