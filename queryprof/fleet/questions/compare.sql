-- Statements of a version beside another. A host is one observation: the means and variances over hosts of
-- the logarithms of the time, and of the VM steps, of an execution; and the sums of their ranks on the later
-- version's hosts, as if all were slower by what counts: equal values have the mean of their ranks.
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
times AS (
    SELECT
        statement_id, version, ln(ns / n) AS log_ns,
        ln(ns / n) - CASE WHEN version = $after THEN ln($slower) ELSE 0.0 END AS as_before,
        ln(ns / n) - CASE WHEN version = $after THEN ln($faster) ELSE 0.0 END AS as_after
    FROM hosts
    WHERE n > 0 AND ns > 0
),
stepped AS (
    SELECT
        statement_id, version,
        ln(steps / counted_n) - CASE WHEN version = $after THEN ln($more_steps) ELSE 0.0 END AS as_before
    FROM hosts
    WHERE counted_n > 0 AND steps > 0
),
time_ranks AS (
    SELECT
        statement_id, version,
        rank() OVER (PARTITION BY statement_id ORDER BY as_before)
            + (count(*) OVER (PARTITION BY statement_id, as_before) - 1) / CAST(2 AS DOUBLE) AS slower_rank,
        rank() OVER (PARTITION BY statement_id ORDER BY as_after DESC)
            + (count(*) OVER (PARTITION BY statement_id, as_after) - 1) / CAST(2 AS DOUBLE) AS faster_rank
    FROM times
),
step_ranks AS (
    SELECT
        statement_id, version,
        rank() OVER (PARTITION BY statement_id ORDER BY as_before)
            + (count(*) OVER (PARTITION BY statement_id, as_before) - 1) / CAST(2 AS DOUBLE) AS step_rank
    FROM stepped
),
time_sums AS (
    SELECT statement_id, sum(slower_rank) AS slower_sum, sum(faster_rank) AS faster_sum
    FROM time_ranks WHERE version = $after GROUP BY statement_id
),
step_sums AS (
    SELECT statement_id, sum(step_rank) AS step_sum
    FROM step_ranks WHERE version = $after GROUP BY statement_id
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
dates AS (
    SELECT date, max(end_s) - min(start_s) AS recorded_s FROM aggregate WHERE version = $after GROUP BY date
),
days AS (SELECT greatest(sum(recorded_s), 3600.0) / 86400.0 AS day_count FROM dates)
SELECT
    b.statement_text AS statement, b.statement_id,
    a.time_hosts AS hosts_before, b.time_hosts AS hosts_after,
    a.all_ns / a.all_n AS mean_before_ns, b.all_ns / b.all_n AS mean_after_ns,
    a.time_mean AS time_mean_before, b.time_mean AS time_mean_after,
    a.time_variance AS time_variance_before, b.time_variance AS time_variance_after,
    a.step_hosts AS step_hosts_before, b.step_hosts AS step_hosts_after,
    a.step_mean AS step_mean_before, b.step_mean AS step_mean_after,
    a.step_variance AS step_variance_before, b.step_variance AS step_variance_after,
    t.slower_sum AS slower_rank_sum, t.faster_sum AS faster_rank_sum, p.step_sum AS step_rank_sum,
    a.steps_each AS vm_steps_before, b.steps_each AS vm_steps_after,
    (b.all_ns - a.all_ns / a.all_n * b.all_n) / 1e9 / d.day_count AS cost_seconds_a_day
FROM sides AS a
JOIN sides AS b ON a.statement_id = b.statement_id
LEFT JOIN time_sums AS t ON t.statement_id = a.statement_id
LEFT JOIN step_sums AS p ON p.statement_id = a.statement_id
CROSS JOIN days AS d
WHERE a.version = $before AND b.version = $after
ORDER BY cost_seconds_a_day DESC, b.statement_id
