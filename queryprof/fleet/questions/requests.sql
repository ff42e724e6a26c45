-- Executions of a statement in each span of a name, by version: an N+1 that came with a version has no
-- slower statement. One that is new, and executed once in each, may be another text of the same.
WITH executed AS (
    SELECT
        span, version, statement_id,
        max(statement) AS statement_text,
        sum(CAST(CASE WHEN operation IN ('execute', 'executemany', 'executescript') THEN count ELSE 0 END AS DOUBLE)) AS n
    FROM aggregate
    WHERE span <> '' AND version IN ($before, $after)
    GROUP BY span, version, statement_id
),
ended AS (
    SELECT span, version, sum(CAST(count AS DOUBLE)) AS spans
    FROM span
    WHERE version IN ($before, $after)
    GROUP BY span, version
),
each_span AS (
    SELECT e.span, e.version, e.statement_id, e.statement_text, e.n / s.spans AS n_each
    FROM executed AS e
    JOIN ended AS s ON s.span = e.span AND s.version = e.version
    WHERE s.spans >= 20
),
earlier AS (SELECT span, statement_id, n_each FROM each_span WHERE version = $before),
known AS (SELECT span FROM ended WHERE version = $before AND spans >= 20)
SELECT
    l.span, l.statement_text AS statement, l.statement_id,
    coalesce(e.n_each, 0.0) AS each_before, l.n_each AS each_after
FROM each_span AS l
JOIN known AS k ON k.span = l.span
LEFT JOIN earlier AS e ON e.span = l.span AND e.statement_id = l.statement_id
WHERE l.version = $after AND l.n_each > 1.2 * coalesce(e.n_each, 1.0) + 0.5
ORDER BY each_after - each_before DESC, l.span, l.statement_id
