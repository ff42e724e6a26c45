-- Statements that one of two versions has alone.
WITH sums AS (
    SELECT
        statement_id,
        max(statement) AS statement_text, max(site) AS site_text,
        sum(CAST(CASE WHEN version = $before THEN count ELSE 0 END AS DOUBLE)) AS n_before,
        sum(CAST(CASE WHEN version = $after THEN count ELSE 0 END AS DOUBLE)) AS n_after,
        sum(CAST(self_ns AS DOUBLE)) / 1e9 AS self_sum
    FROM aggregate
    WHERE version IN ($before, $after)
    GROUP BY statement_id
)
SELECT
    CASE WHEN n_before > 0 THEN 'gone' ELSE 'new' END AS change,
    statement_text AS statement, statement_id, site_text AS site, n_before + n_after AS calls, self_sum AS seconds
FROM sums
WHERE (n_before > 0 AND n_after = 0) OR (n_before = 0 AND n_after > 0)
ORDER BY seconds DESC, statement_id
