"""Sessions and lists of them in GraphQL.

A session is read with all of its chain, and a list with the chains of all its sessions by one statement: what is asked
of a chain's members takes no more statements, however many there are.
"""

from functools import cached_property
from typing import Any
from uuid import UUID

import strawberry
from strawberry.relay import GlobalID

from holdfast.api.backendai.graphql.types import enum_type, object_type
from holdfast.api.backendai.models.session_views import (
    RetryStateView,
    SessionLifecycle,
    SessionMetadata,
    SessionNetwork,
    SessionResource,
    SessionRuntime,
    SessionView,
)
from holdfast.api.backendai.views import session_view
from holdfast.domain.failure import Cause
from holdfast.domain.record import evolve
from holdfast.domain.sessions.policy import SessionRetryPolicy, document
from holdfast.service.operations.sessions import SessionDetail

SESSION = "SessionV2"


@strawberry.type(name=SESSION, description="A session.")
class SessionNode:
    """A session, as its chain has been read."""

    detail: strawberry.Private[SessionDetail]

    @cached_property
    def view(self) -> SessionView:
        """The session as REST answers it, but without its chain."""
        return session_view(evolve(self.detail, chain=()))

    def _member(self, retry_count: int) -> "SessionNode":
        return SessionNode(detail=evolve(self.detail, session=self.detail.chain[retry_count]))

    @strawberry.field(description="The id among all objects.")
    def id(self) -> strawberry.ID:
        """The id by which Relay knows it."""
        return strawberry.ID(str(GlobalID(SESSION, self.detail.session.id)))

    @strawberry.field
    def entity_id(self) -> UUID:
        """The session's own id."""
        return self.view.entity_id

    @strawberry.field
    def image_ids(self) -> list[UUID]:
        """The image."""
        return self.view.image_ids

    @strawberry.field
    def domain_name(self) -> str:
        """The domain."""
        return self.view.domain_name

    @strawberry.field
    def user_id(self) -> UUID:
        """The owner."""
        return self.view.user_id

    @strawberry.field
    def project_id(self) -> UUID:
        """The project."""
        return self.view.project_id

    @strawberry.field
    def replica_id(self) -> UUID | None:
        """The replica that it is of a deployment."""
        return self.view.replica_id

    @strawberry.field(graphql_type=object_type(SessionMetadata))
    def metadata(self) -> SessionMetadata:
        """What it is."""
        return self.view.metadata

    @strawberry.field(graphql_type=object_type(SessionResource))
    def resource(self) -> SessionResource:
        """What it takes."""
        return self.view.resource

    @strawberry.field(graphql_type=object_type(SessionLifecycle))
    def lifecycle(self) -> SessionLifecycle:
        """What has become of it."""
        return self.view.lifecycle

    @strawberry.field(graphql_type=object_type(SessionRuntime))
    def runtime(self) -> SessionRuntime:
        """What it runs."""
        return self.view.runtime

    @strawberry.field(graphql_type=object_type(SessionNetwork))
    def network(self) -> SessionNetwork:
        """Its network."""
        return self.view.network

    @strawberry.field(description="The session that it retries.")
    def parent_session(self) -> "SessionNode | None":
        """The session that it retries."""
        retry_count = self.detail.session.retry_count
        return self._member(retry_count - 1) if retry_count else None

    @strawberry.field(description="How many retries it comes after.")
    def retry_count(self) -> int:
        """How many retries it comes after."""
        return self.detail.session.retry_count

    @strawberry.field(description="How many retries its chain may have.")
    def max_retries(self) -> int:
        """How many retries its chain may have."""
        return self.detail.session.max_retries

    @strawberry.field(graphql_type=object_type(SessionRetryPolicy), description="The effective policy of its chain.")
    def retry_policy(self) -> dict[str, Any]:
        """Its policy."""
        return document(self.detail.session.policy)

    @strawberry.field(graphql_type=enum_type(Cause) | None, description="The cause of its own failure.")
    def retry_cause(self) -> str | None:
        """Why it failed."""
        return self.detail.session.retry_cause

    @strawberry.field(graphql_type=object_type(RetryStateView), description="What becomes of its failure.")
    def retry_state(self) -> RetryStateView:
        """Its retry."""
        return self.view.retry_state

    @strawberry.field(description="All sessions of its chain, oldest first.")
    def retry_chain(self) -> "list[SessionNode]":
        """Its chain."""
        return [self._member(retry_count) for retry_count in range(len(self.detail.chain))]
