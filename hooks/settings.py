"""Settings of the hooks, taken from the current recording."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.core.settings import Settings


class HookSettings:
    """Settings for hooks that attach from now on.

    Attributes:
        heartbeat_s: interval between the heartbeats of loops.
    """

    heartbeat_s = 0.1

    def take(self, settings: Settings) -> None:
        """Take over the settings of a new recording."""
        self.heartbeat_s = settings.heartbeat_ms / 1000


hook_settings = HookSettings()
