"""What a deployment calls its program: service, version and environment, by variables of the
process's environment, never guessed.

OpenTelemetry's variables are read where queryprof's own are missing
(https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/;
the keys: https://opentelemetry.io/docs/specs/semconv/resource/).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SERVICE_VARIABLE = "QUERYPROF_SERVICE"
OWN = (
    ("service", SERVICE_VARIABLE, ("service.name",)),
    ("version", "QUERYPROF_VERSION", ("service.version",)),
    (
        "environment",
        "QUERYPROF_ENVIRONMENT",
        ("deployment.environment.name", "deployment.environment"),
    ),
)
"""Each name with its own variable, and its keys in OTEL_RESOURCE_ATTRIBUTES, the former last."""

OTEL_SERVICE, OTEL_ATTRIBUTES = "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"

LONGEST = 256
"""Characters that are kept of a name."""

MOST_ATTRIBUTES = 65536
"""Characters of all attributes that are looked at."""


def deployment_names(environ: Mapping[str, str]) -> dict[str, str | None]:
    """Service, version and environment; None: not set."""
    attributes = _attributes(environ.get(OTEL_ATTRIBUTES, "")[:MOST_ATTRIBUTES])
    found = {}
    for name, variable, keys in OWN:
        other = environ.get(OTEL_SERVICE) if name == "service" else None
        of_keys = next((attributes[key] for key in keys if attributes.get(key)), None)
        value = environ.get(variable) or other or of_keys
        found[name] = value[:LONGEST] if value else None
    return found


def _attributes(text: str) -> dict[str, str]:
    """Pairs KEY=VALUE with commas between, values percent-encoded; others are left out
    (https://www.w3.org/TR/baggage/).
    """
    found = {}
    for pair in text.split(","):
        key, is_pair, value = pair.partition("=")
        if is_pair:
            found[key.strip()] = _decoded(value.strip())
    return found


def _decoded(value: str) -> str:
    if "%" not in value:
        return value
    from urllib.parse import unquote  # only here: few programs need it

    return unquote(value, errors="replace")
