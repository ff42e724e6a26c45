"""What deployments call their programs, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from queryprof.model import Process

SHOWN = 3


def names_of(process: Process) -> Mapping[str, str | None]:
    """Those of a recorded process."""
    return {
        "service": process.service,
        "version": process.version,
        "environment": process.environment,
    }


def in_words(deployments: Iterable[Mapping[str, str | None]]) -> str:
    """The first of them: "shop 1.4.2 (production)"; "": none is set."""
    found = list(dict.fromkeys(filter(None, map(_one, deployments))))
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{', '.join(found[:SHOWN])}{more}"


def _one(names: Mapping[str, str | None]) -> str:
    service, version, environment = (
        names.get(name) or "" for name in ("service", "version", "environment")
    )
    return " ".join(part for part in (service, version, environment and f"({environment})") if part)
