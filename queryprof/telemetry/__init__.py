"""What a team's own telemetry gets: Prometheus's metrics, OpenTelemetry's protocol."""
