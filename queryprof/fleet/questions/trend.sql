-- Statements a fifth slower on a day than in the seven days before: the first such day, the version that
-- came then, and what it has cost since, at the former time for each.
WITH daily AS (
    SELECT
        statement_id, date AS day,
        max(statement) AS statement_text,
        sum(CAST(self_ns AS DOUBLE)) AS ns,
        sum(CAST(CASE WHEN operation IN ('fetchone', 'fetchmany', 'fetchall', 'next') THEN 0 ELSE count END AS DOUBLE)) AS n
    FROM aggregate
    GROUP BY statement_id, date
),
beside AS (
    SELECT
        daily.*,
        sum(ns) OVER (PARTITION BY statement_id ORDER BY day ROWS BETWEEN 7 PRECEDING AND 1 PRECEDING) AS ns_before,
        sum(n) OVER (PARTITION BY statement_id ORDER BY day ROWS BETWEEN 7 PRECEDING AND 1 PRECEDING) AS n_before
    FROM daily
),
slower AS (
    SELECT statement_id, min(day) AS first_day
    FROM beside
    WHERE n >= 20 AND n_before >= 20 AND ns / n > 1.2 * ns_before / n_before
    GROUP BY statement_id
),
costs AS (
    SELECT
        b.statement_id, s.first_day,
        max(b.statement_text) AS statement_text,
        max(CASE WHEN b.day = s.first_day THEN b.ns_before / b.n_before END) AS former_ns,
        sum(b.ns) / nullif(sum(b.n), 0) AS latter_ns,
        sum(b.ns) AS ns_since, sum(b.n) AS n_since
    FROM beside AS b
    JOIN slower AS s ON s.statement_id = b.statement_id AND b.day >= s.first_day
    GROUP BY b.statement_id, s.first_day
),
versions AS (SELECT version, min(date) AS first_day FROM aggregate WHERE version IS NOT NULL GROUP BY version),
came AS (SELECT first_day, max(version) AS version_text FROM versions GROUP BY first_day)
SELECT
    c.first_day AS since_day, v.version_text AS version, c.statement_text AS statement, c.statement_id,
    c.former_ns AS mean_before_ns, c.latter_ns AS mean_after_ns, c.latter_ns / c.former_ns AS times,
    (c.ns_since - c.former_ns * c.n_since) / 1e9 AS cost_seconds
FROM costs AS c
LEFT JOIN came AS v ON v.first_day = c.first_day
WHERE c.ns_since > c.former_ns * c.n_since
ORDER BY cost_seconds DESC, c.statement_id
