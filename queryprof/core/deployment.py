"""The deployment's names for a program: service, version and environment, from environment
variables. queryprof never guesses the names.

If queryprof's own variables are missing, OpenTelemetry's variables are used
(https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/; for the keys:
https://opentelemetry.io/docs/specs/semconv/resource/).
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
"""The environment variable of each name, and its keys in OTEL_RESOURCE_ATTRIBUTES. A key that
OpenTelemetry has renamed comes last.
"""

OTEL_SERVICE, OTEL_ATTRIBUTES = "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"

MAX_CHARACTERS = 256
"""Maximum number of characters in a name."""

MAX_ATTRIBUTES = 65536
"""Maximum number of characters in OTEL_RESOURCE_ATTRIBUTES."""


def deployment_names(environ: Mapping[str, str]) -> dict[str, str | None]:
    """Return service, version and environment; each is None if it is not set."""
    attributes = _parse_attributes(environ.get(OTEL_ATTRIBUTES, "")[:MAX_ATTRIBUTES])
    found = {}
    for name, variable, keys in OWN:
        other = environ.get(OTEL_SERVICE) if name == "service" else None
        of_keys = next((attributes[key] for key in keys if attributes.get(key)), None)
        value = environ.get(variable) or other or of_keys
        found[name] = value[:MAX_CHARACTERS] if value else None
    return found


def _parse_attributes(text: str) -> dict[str, str]:
    """Parse comma-separated KEY=VALUE items with percent-encoded values, and skip other items
    (https://www.w3.org/TR/baggage/).
    """
    found = {}
    for pair in text.split(","):
        key, is_pair, value = pair.partition("=")
        if is_pair:
            found[key.strip()] = _percent_decoded(value.strip())
    return found


def _percent_decoded(value: str) -> str:
    if "%" not in value:
        return value
    from urllib.parse import unquote  # imported only here: few programs need it

    return unquote(value, errors="replace")
