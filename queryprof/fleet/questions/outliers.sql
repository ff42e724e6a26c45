-- Hosts on which a statement takes more than 3 times what it does on the median host, by what that costs.
WITH hosts AS (
    SELECT
        statement_id, host,
        max(statement) AS statement_text,
        sum(CAST(self_ns AS DOUBLE)) AS ns,
        sum(CAST(CASE WHEN operation IN ('fetchone', 'fetchmany', 'fetchall', 'next') THEN 0 ELSE count END AS DOUBLE)) AS n
    FROM aggregate
    GROUP BY statement_id, host
),
means AS (SELECT statement_id, host, statement_text, ns, n, ns / n AS mean_ns FROM hosts WHERE n >= 20),
usual AS (
    SELECT statement_id, median(mean_ns) AS usual_ns, count(*) AS host_count
    FROM means
    GROUP BY statement_id
),
found AS (
    SELECT
        m.host, m.statement_id, m.statement_text, m.mean_ns, u.usual_ns, m.n,
        m.mean_ns / u.usual_ns AS times, (m.ns - u.usual_ns * m.n) / 1e9 AS lost
    FROM means AS m
    JOIN usual AS u ON u.statement_id = m.statement_id
    WHERE u.host_count >= 3 AND u.usual_ns > 0 AND m.mean_ns > 3 * u.usual_ns
),
placed AS (
    SELECT
        found.*,
        sum(lost) OVER (PARTITION BY host) AS host_lost,
        count(*) OVER (PARTITION BY host) AS host_statements,
        row_number() OVER (PARTITION BY host ORDER BY lost DESC, statement_id) AS place
    FROM found
)
SELECT
    host, host_lost AS lost_seconds, host_statements AS statements,
    statement_text AS statement, statement_id, times, mean_ns, usual_ns, n AS executions
FROM placed
WHERE place = 1
ORDER BY lost_seconds DESC, host
