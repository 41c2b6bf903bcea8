"""Settings from another system's configuration file, which override the operator's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.category import FailureCategory  # noqa: TC001 - the codec of what is stored looks it up
from holdfast.domain.policy.model import Backoff  # noqa: TC001 - the codec of what is stored looks it up
from holdfast.domain.record import Struct, evolve
from holdfast.errors import Problem

if TYPE_CHECKING:
    from holdfast.domain.policy.model import RetrySettings


class FileRetries(Struct, frozen=True):
    """The file's settings about retries."""

    enabled: bool
    """Whether retry policies apply to the jobs of that system's door."""
    global_max_retries: int
    default_backoff: Backoff
    default_policy: str | None = None


class FileSettings(Struct, frozen=True):
    """The settings of a file."""

    file: str
    """Its name, for messages that refuse to change its settings elsewhere."""
    retries: FileRetries | None = None
    categories: tuple[FailureCategory, ...] = ()
    """Tried before the stored categories, in this order."""
    default_category: str = ""
    """The category of a failure that neither these nor the stored ones match; built-in ones are not tried then."""
    default_subcategory: str = ""

    @property
    def enabled(self) -> bool:
        """Whether retry policies apply to the jobs of the door."""
        return self.retries is None or self.retries.enabled

    def over(self, settings: RetrySettings, default_policy: str | None) -> tuple[RetrySettings, str | None]:
        """Return the settings in force, and the name of the default policy."""
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
        """Return what to store of new settings: what the file sets keeps its stored value."""
        if self.retries is None:
            return settings, default_policy
        before, policy = own
        kept = evolve(settings, global_max_retries=before.global_max_retries, default_backoff=before.default_backoff)
        return kept, policy

    def problems(self, settings: RetrySettings, default_policy: str | None) -> list[Problem]:
        """List the new settings that only the file can change."""
        ruled, policy = self.over(settings, default_policy)
        comparisons = (
            ("globalMaxRetries", ruled.global_max_retries == settings.global_max_retries),
            ("defaultBackoff", ruled.default_backoff == settings.default_backoff),
            ("defaultPolicyName", policy == default_policy),
        )
        hint = f"edit {self.file}; it is read again when it changes"
        return [Problem(path, f"is set by {self.file}", hint=hint) for path, same in comparisons if not same]
