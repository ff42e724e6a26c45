"""Export to a team's own telemetry: Prometheus metrics and OpenTelemetry."""
