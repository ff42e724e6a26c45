"""Names of deployed services, as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from queryprof.model import Process

MAX_SHOWN = 3


def deployment_names(process: Process) -> Mapping[str, str | None]:
    """Return the service, version and environment of a process."""
    return {
        "service": process.service,
        "version": process.version,
        "environment": process.environment,
    }


def deployments_in_words(deployments: Iterable[Mapping[str, str | None]]) -> str:
    """Return the first deployments, like "shop 1.4.2 (production)"; "" if none is set."""
    found = list(dict.fromkeys(filter(None, map(_deployment_in_words, deployments))))
    more = f" and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
    return f"{', '.join(found[:MAX_SHOWN])}{more}"


def _deployment_in_words(names: Mapping[str, str | None]) -> str:
    service, version, environment = (
        names.get(name) or "" for name in ("service", "version", "environment")
    )
    return " ".join(part for part in (service, version, environment and f"({environment})") if part)
