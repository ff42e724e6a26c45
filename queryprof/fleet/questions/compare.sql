-- Statements of a version beside another. A host is one observation: the ratio of the geometric means over
-- hosts, and its interval of 95% (normal; from $least_hosts hosts a side on).
WITH hosts AS (
    SELECT
        statement_id, version, host,
        max(statement) AS statement_text,
        sum(CAST(self_ns AS DOUBLE)) AS ns,
        sum(CAST(CASE WHEN operation IN ('fetchone', 'fetchmany', 'fetchall', 'next') THEN 0 ELSE count END AS DOUBLE)) AS n,
        sum(CAST(vm_steps AS DOUBLE)) AS steps,
        sum(CAST(counted AS DOUBLE)) AS counted_n,
        min(window_start) AS first_seen,
        max(window_end) AS last_seen
    FROM aggregate
    WHERE version IN ($before, $after)
    GROUP BY statement_id, version, host
),
sides AS (
    SELECT
        statement_id, version,
        max(statement_text) AS statement_text,
        CAST(count(*) AS DOUBLE) AS host_count,
        avg(CASE WHEN n > 0 AND ns > 0 THEN ln(ns / n) END) AS time_mean,
        coalesce(var_samp(CASE WHEN n > 0 AND ns > 0 THEN ln(ns / n) END), 0.0) AS time_var,
        avg(CASE WHEN counted_n > 0 AND steps > 0 THEN ln(steps / counted_n) END) AS step_mean,
        coalesce(var_samp(CASE WHEN counted_n > 0 AND steps > 0 THEN ln(steps / counted_n) END), 0.0) AS step_var,
        sum(ns) AS all_ns,
        sum(n) AS all_n,
        sum(steps) / nullif(sum(counted_n), 0) AS steps_each,
        min(first_seen) AS first_seen,
        max(last_seen) AS last_seen
    FROM hosts
    GROUP BY statement_id, version
    HAVING sum(n) > 0
),
days AS (
    SELECT version, CAST(count(DISTINCT date) AS DOUBLE) AS day_count
    FROM aggregate
    WHERE version IN ($before, $after)
    GROUP BY version
),
joined AS (
    SELECT
        b.statement_id, b.statement_text,
        a.host_count AS hosts_before, b.host_count AS hosts_after,
        a.all_ns / a.all_n AS mean_before, b.all_ns / b.all_n AS mean_after,
        a.steps_each AS steps_before, b.steps_each AS steps_after,
        b.time_mean - a.time_mean AS time_log,
        1.96 * sqrt(a.time_var / a.host_count + b.time_var / b.host_count) AS time_half,
        b.step_mean - a.step_mean AS step_log,
        1.96 * sqrt(a.step_var / a.host_count + b.step_var / b.host_count) AS step_half,
        (b.all_ns - a.all_ns / a.all_n * b.all_n) / 1e9 / d.day_count AS cost_a_day
    FROM sides AS a
    JOIN sides AS b ON a.statement_id = b.statement_id
    JOIN days AS d ON d.version = b.version
    WHERE a.version = $before AND b.version = $after
),
judged AS (
    SELECT
        joined.*,
        CASE
            WHEN time_log IS NULL THEN 'unknown'
            WHEN hosts_before < $least_hosts OR hosts_after < $least_hosts THEN 'unclear'
            WHEN exp(time_log - time_half) > 1.05 THEN 'slower'
            WHEN exp(time_log + time_half) < 0.95 THEN 'faster'
            ELSE 'same'
        END AS time_verdict,
        CASE
            WHEN step_log IS NULL THEN 'unknown'
            WHEN hosts_before < $least_hosts OR hosts_after < $least_hosts THEN 'unclear'
            WHEN exp(step_log - step_half) > 1.5 THEN 'more'
            WHEN exp(step_log + step_half) < 1.0 / 1.5 THEN 'fewer'
            ELSE 'same'
        END AS step_verdict
    FROM joined
)
SELECT
    statement_text AS statement, statement_id,
    hosts_before, hosts_after,
    mean_before AS mean_before_ns, mean_after AS mean_after_ns,
    exp(time_log) AS ratio, exp(time_log - time_half) AS low, exp(time_log + time_half) AS high,
    steps_before AS vm_steps_before, steps_after AS vm_steps_after,
    cost_a_day AS cost_seconds_a_day,
    time_verdict, step_verdict
FROM judged
ORDER BY cost_a_day DESC, statement_id
