"""Export figures to other monitoring systems: Prometheus and OpenTelemetry."""
