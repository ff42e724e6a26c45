-- The findings of the fleet: on how many hosts, what they could win a day, and since when.
WITH dates AS (SELECT date, max(end_s) - min(start_s) AS recorded_s FROM aggregate GROUP BY date),
days AS (SELECT greatest(sum(recorded_s), 3600.0) / 86400.0 AS day_count FROM dates),
sums AS (
    SELECT
        identity,
        max(category) AS category_text, max(statement_id) AS statement_key, max(site) AS site_text,
        max(fix) AS fix_text,
        sum(CAST(gain_ns AS DOUBLE)) / 1e9 AS gain, count(DISTINCT host) AS host_count,
        min(window_start) AS first_start, max(window_end) AS last_end
    FROM finding
    GROUP BY identity
),
firsts AS (
    SELECT s.identity, min(f.version) AS version_text
    FROM sums AS s
    JOIN finding AS f ON f.identity = s.identity AND f.window_start = s.first_start
    GROUP BY s.identity
)
SELECT
    s.category_text AS category, s.site_text AS site, s.statement_key AS statement_id, s.host_count AS hosts,
    s.gain / nullif(d.day_count, 0) AS gain_seconds_a_day,
    s.first_start AS first_seen, v.version_text AS version, s.last_end AS last_seen,
    s.fix_text AS fix, s.identity
FROM sums AS s
CROSS JOIN days AS d
LEFT JOIN firsts AS v ON v.identity = s.identity
ORDER BY gain_seconds_a_day DESC, s.identity
