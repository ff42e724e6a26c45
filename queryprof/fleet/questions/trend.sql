-- Statements a fifth slower from a day on than in the seven days before it: the first such day, the version
-- that most executions were of from then on, and what it has cost since, at the former time for each.
WITH daily AS (
    SELECT
        statement_id, date AS day, day_number,
        max(statement) AS statement_text,
        sum(CAST(self_ns AS DOUBLE)) AS ns,
        sum(CAST(CASE WHEN operation IN ('fetchone', 'fetchmany', 'fetchall', 'next') THEN 0 ELSE count END AS DOUBLE)) AS n
    FROM aggregate
    GROUP BY statement_id, date, day_number
),
beside AS (
    SELECT
        daily.*,
        sum(ns) OVER (PARTITION BY statement_id ORDER BY day_number RANGE BETWEEN 7 PRECEDING AND 1 PRECEDING) AS ns_before,
        sum(n) OVER (PARTITION BY statement_id ORDER BY day_number RANGE BETWEEN 7 PRECEDING AND 1 PRECEDING) AS n_before,
        sum(ns) OVER (PARTITION BY statement_id ORDER BY day_number DESC RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS ns_since,
        sum(n) OVER (PARTITION BY statement_id ORDER BY day_number DESC RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS n_since
    FROM daily
),
slower AS (
    SELECT statement_id, min(day_number) AS first_number
    FROM beside
    WHERE n >= 20 AND n_before >= 20
        AND ns / n > 1.2 * ns_before / n_before AND ns_since / n_since > 1.2 * ns_before / n_before
    GROUP BY statement_id
),
used AS (
    SELECT day_number, version, sum(CAST(count AS DOUBLE)) AS n
    FROM aggregate
    WHERE version IS NOT NULL
    GROUP BY day_number, version
),
placed AS (
    SELECT day_number, version, row_number() OVER (PARTITION BY day_number ORDER BY n DESC, version) AS place
    FROM used
),
main AS (
    SELECT day_number, version, lag(version) OVER (ORDER BY day_number) AS version_before
    FROM placed
    WHERE place = 1
)
SELECT
    b.day AS since_day,
    CASE WHEN m.version_before IS NULL OR m.version <> m.version_before THEN m.version END AS version,
    b.statement_text AS statement, b.statement_id,
    b.ns_before / b.n_before AS mean_before_ns, b.ns_since / b.n_since AS mean_after_ns,
    (b.ns_since / b.n_since) / (b.ns_before / b.n_before) AS times,
    (b.ns_since - b.ns_before / b.n_before * b.n_since) / 1e9 AS cost_seconds
FROM beside AS b
JOIN slower AS s ON s.statement_id = b.statement_id AND s.first_number = b.day_number
LEFT JOIN main AS m ON m.day_number = b.day_number
ORDER BY cost_seconds DESC, b.statement_id
