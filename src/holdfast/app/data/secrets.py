"""Where the secrets of jobs are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.storage.secrets import SecretFiles

if TYPE_CHECKING:
    from holdfast.app.data.datadir import DataDir
    from holdfast.app.settings import Settings


def secret_files(settings: Settings, directory: DataDir) -> SecretFiles:
    """Return the folder of secrets; where programs run as their submitters, the modes of its files count, too."""
    return SecretFiles(settings.secrets or directory.secrets, by_accounts=settings.run_as == "submitter")
