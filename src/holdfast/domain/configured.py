"""What a configuration file of another system says for everyone, over what the operator's settings say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.category import FailureCategory  # noqa: TC001 - the codec of what is stored looks it up
from holdfast.domain.policy.model import Backoff  # noqa: TC001 - the codec of what is stored looks it up
from holdfast.domain.record import Struct, evolve
from holdfast.errors import Problem

if TYPE_CHECKING:
    from holdfast.domain.policy.model import RetrySettings


class Retries(Struct, frozen=True):
    """What the file says of retries, where it says anything of them."""

    enabled: bool
    """Whether retry policies apply to the jobs of its door."""
    global_max_retries: int
    default_backoff: Backoff
    default_policy: str | None = None


class Configured(Struct, frozen=True):
    """What a file says."""

    file: str
    """Its name, for whoever is refused a setting of its."""
    retries: Retries | None = None
    categories: tuple[FailureCategory, ...] = ()
    """Looked at before those that are stored, in their order."""
    default_category: str = ""
    """Of a failure that none of these and none of those fits; the built-in ones are not looked at then."""
    default_subcategory: str = ""

    @property
    def enabled(self) -> bool:
        """Whether retry policies apply to the jobs of the door."""
        return self.retries is None or self.retries.enabled

    def over(self, settings: RetrySettings, default_policy: str | None) -> tuple[RetrySettings, str | None]:
        """Return the settings that are in force, and the name of the default policy."""
        from_file = self.retries
        if from_file is None:
            return settings, default_policy
        ruled = evolve(
            settings, global_max_retries=from_file.global_max_retries, default_backoff=from_file.default_backoff
        )
        return ruled, from_file.default_policy

    def beside(
        self, settings: RetrySettings, default_policy: str | None, own: tuple[RetrySettings, str | None]
    ) -> tuple[RetrySettings, str | None]:
        """Return what to store of new settings: of what the file says, what was stored before."""
        if self.retries is None:
            return settings, default_policy
        before, policy = own
        kept = evolve(settings, global_max_retries=before.global_max_retries, default_backoff=before.default_backoff)
        return kept, policy

    def problems(self, settings: RetrySettings, default_policy: str | None) -> list[Problem]:
        """Say what of new settings is the file's to say."""
        ruled, policy = self.over(settings, default_policy)
        comparisons = (
            ("globalMaxRetries", ruled.global_max_retries == settings.global_max_retries),
            ("defaultBackoff", ruled.default_backoff == settings.default_backoff),
            ("defaultPolicyName", policy == default_policy),
        )
        hint = f"edit {self.file}, which is read again when it changes"
        return [Problem(path, f"is set by {self.file}", hint=hint) for path, same in comparisons if not same]
