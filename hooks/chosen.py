"""What the settings choose of the hooks, while a recording is on."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.core.settings import Settings


class Chosen:
    """What hooks that attach from now on do.

    Attributes:
        heartbeat_s: between the heartbeats of loops.
    """

    heartbeat_s = 0.1

    def take(self, settings: Settings) -> None:
        """Takes over the settings of a recording that begins."""
        self.heartbeat_s = settings.heartbeat_ms / 1000


chosen = Chosen()
