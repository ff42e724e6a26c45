-- Findings of a version that the one before had not.
WITH earlier AS (SELECT DISTINCT identity FROM finding WHERE version = $before),
later AS (
    SELECT
        identity,
        max(category) AS category_text, max(site) AS site_text, max(fix) AS fix_text,
        sum(CAST(gain_ns AS DOUBLE)) / 1e9 AS gain, count(DISTINCT host) AS host_count,
        min(window_start) AS first_seen
    FROM finding
    WHERE version = $after
    GROUP BY identity
)
SELECT
    l.category_text AS category, l.site_text AS site, l.fix_text AS fix, l.gain AS gain_seconds,
    l.host_count AS hosts, l.first_seen, l.identity
FROM later AS l
LEFT JOIN earlier AS e ON e.identity = l.identity
WHERE e.identity IS NULL
ORDER BY gain_seconds DESC, l.identity
