-- Statements of a version beside another. A host is one observation: the means and variances over hosts of
-- the logarithms of the time, and of the VM steps, of an execution.
WITH hosts AS (
    SELECT
        statement_id, version, host,
        max(statement) AS statement_text,
        sum(CAST(self_ns AS DOUBLE)) AS ns,
        sum(CAST(CASE WHEN operation IN ('fetchone', 'fetchmany', 'fetchall', 'next') THEN 0 ELSE count END AS DOUBLE)) AS n,
        sum(CAST(vm_steps AS DOUBLE)) AS steps,
        sum(CAST(counted AS DOUBLE)) AS counted_n
    FROM aggregate
    WHERE version IN ($before, $after)
    GROUP BY statement_id, version, host
),
sides AS (
    SELECT
        statement_id, version,
        max(statement_text) AS statement_text,
        count(CASE WHEN n > 0 AND ns > 0 THEN 1 END) AS time_hosts,
        avg(CASE WHEN n > 0 AND ns > 0 THEN ln(ns / n) END) AS time_mean,
        var_samp(CASE WHEN n > 0 AND ns > 0 THEN ln(ns / n) END) AS time_variance,
        count(CASE WHEN counted_n > 0 AND steps > 0 THEN 1 END) AS step_hosts,
        avg(CASE WHEN counted_n > 0 AND steps > 0 THEN ln(steps / counted_n) END) AS step_mean,
        var_samp(CASE WHEN counted_n > 0 AND steps > 0 THEN ln(steps / counted_n) END) AS step_variance,
        sum(ns) AS all_ns,
        sum(n) AS all_n,
        sum(steps) / nullif(sum(counted_n), 0) AS steps_each
    FROM hosts
    GROUP BY statement_id, version
    HAVING sum(n) > 0
),
days AS (
    SELECT CAST(count(DISTINCT date) AS DOUBLE) AS day_count FROM aggregate WHERE version = $after
)
SELECT
    b.statement_text AS statement, b.statement_id,
    a.time_hosts AS hosts_before, b.time_hosts AS hosts_after,
    a.all_ns / a.all_n AS mean_before_ns, b.all_ns / b.all_n AS mean_after_ns,
    a.time_mean AS time_mean_before, b.time_mean AS time_mean_after,
    a.time_variance AS time_variance_before, b.time_variance AS time_variance_after,
    a.step_hosts AS step_hosts_before, b.step_hosts AS step_hosts_after,
    a.step_mean AS step_mean_before, b.step_mean AS step_mean_after,
    a.step_variance AS step_variance_before, b.step_variance AS step_variance_after,
    a.steps_each AS vm_steps_before, b.steps_each AS vm_steps_after,
    (b.all_ns - a.all_ns / a.all_n * b.all_n) / 1e9 / d.day_count AS cost_seconds_a_day
FROM sides AS a
JOIN sides AS b ON a.statement_id = b.statement_id
CROSS JOIN days AS d
WHERE a.version = $before AND b.version = $after
ORDER BY cost_seconds_a_day DESC, b.statement_id
