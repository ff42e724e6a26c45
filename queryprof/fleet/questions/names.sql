-- What can be chosen: services with their versions and environments, and how many hosts there are.
WITH used AS (
    SELECT service, version, environment, count(DISTINCT host) AS host_count, min(window_start) AS first_seen, max(window_end) AS last_seen
    FROM aggregate
    GROUP BY service, version, environment
)
SELECT service, version, environment, host_count AS hosts, first_seen, last_seen
FROM used
ORDER BY service NULLS FIRST, last_seen DESC, version NULLS FIRST, environment NULLS FIRST
