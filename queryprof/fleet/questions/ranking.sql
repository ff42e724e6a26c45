-- The vital few of the fleet: what most of the database time went to. One text for DuckDB and Spark.
-- By: statement and site ('few'), 'statement', 'site' or 'host'.
WITH keyed AS (
    SELECT
        CASE WHEN $by IN ('few', 'statement') THEN statement_id ELSE '' END AS statement_key,
        CASE WHEN $by IN ('few', 'site') THEN site ELSE '' END AS site_key,
        CASE WHEN $by = 'host' THEN coalesce(host, '') ELSE '' END AS host_key,
        coalesce(service, '') AS service_key,
        aggregate.*
    FROM aggregate
),
sums AS (
    SELECT
        statement_key, site_key, host_key, service_key,
        max(statement) AS statement_text,
        count(DISTINCT statement_id) AS statements,
        sum(CAST(self_ns AS DOUBLE)) AS self_sum,
        sum(CAST(count AS DOUBLE)) AS call_sum,
        sum(CAST(CASE WHEN operation IN ('fetchone', 'fetchmany', 'fetchall', 'next') THEN 0 ELSE count END AS DOUBLE)) AS execution_sum,
        sum(CAST(errors AS DOUBLE)) AS error_sum,
        sum(CAST(rows AS DOUBLE)) AS row_sum,
        sum(CAST(vm_steps AS DOUBLE)) AS step_sum,
        sum(CAST(file_lock_ns AS DOUBLE)) AS lock_sum,
        sum(CAST(file_sync_ns AS DOUBLE)) AS sync_sum,
        sum(CAST(file_read_ns AS DOUBLE)) AS read_sum,
        sum(CAST(file_write_ns AS DOUBLE)) AS write_sum,
        max(execution_max_ns) AS longest,
        count(DISTINCT host) AS hosts,
        min(window_start) AS first_seen,
        max(window_end) AS last_seen
    FROM keyed
    GROUP BY statement_key, site_key, host_key, service_key
),
ranked AS (
    SELECT
        sums.*,
        sum(self_sum) OVER (ORDER BY self_sum DESC, statement_key, site_key, host_key, service_key ROWS UNBOUNDED PRECEDING) - self_sum AS sum_before,
        sum(self_sum) OVER () AS whole,
        count(*) OVER () AS groups,
        row_number() OVER (ORDER BY self_sum DESC, statement_key, site_key, host_key, service_key) AS place
    FROM sums
),
vital AS (
    SELECT ranked.*, count(CASE WHEN sum_before < 0.8 * whole THEN 1 END) OVER () AS vital_groups
    FROM ranked
),
shown AS (
    SELECT * FROM vital
    WHERE place <= CASE WHEN $top > 0 THEN $top WHEN vital_groups < 10 THEN vital_groups ELSE 10 END
),
counted AS (
    SELECT k.statement_key, k.site_key, k.host_key, k.service_key, d.bucket, sum(CAST(d.executions AS DOUBLE)) AS n
    FROM (
        SELECT
            CASE WHEN $by IN ('few', 'statement') THEN statement_id ELSE '' END AS statement_key,
            CASE WHEN $by IN ('few', 'site') THEN site ELSE '' END AS site_key,
            CASE WHEN $by = 'host' THEN coalesce(host, '') ELSE '' END AS host_key,
            coalesce(service, '') AS service_key,
            bucket, executions
        FROM duration
    ) AS d
    JOIN shown AS k ON k.statement_key = d.statement_key AND k.site_key = d.site_key AND k.host_key = d.host_key AND k.service_key = d.service_key
    GROUP BY k.statement_key, k.site_key, k.host_key, k.service_key, d.bucket
),
cumulated AS (
    SELECT
        counted.*,
        sum(n) OVER (PARTITION BY statement_key, site_key, host_key, service_key ORDER BY bucket ROWS UNBOUNDED PRECEDING) AS seen,
        sum(n) OVER (PARTITION BY statement_key, site_key, host_key, service_key) AS total,
        CASE WHEN bucket < 16 THEN CAST(bucket AS DOUBLE)
             ELSE floor((16.0 + bucket % 16) * power(2.0, floor(bucket / 16.0) - 1) + (power(2.0, floor(bucket / 16.0) - 1) - 1) / 2.0)
        END AS middle
    FROM counted
),
percentiles AS (
    SELECT
        statement_key, site_key, host_key, service_key, max(total) AS total,
        min(CASE WHEN seen >= ceil(total * CAST(0.5 AS DOUBLE)) THEN middle END) AS p50,
        min(CASE WHEN seen >= ceil(total * CAST(0.95 AS DOUBLE)) THEN middle END) AS p95,
        min(CASE WHEN seen >= ceil(total * CAST(0.99 AS DOUBLE)) THEN middle END) AS p99
    FROM cumulated
    GROUP BY statement_key, site_key, host_key, service_key
)
SELECT
    CAST(s.place AS INTEGER) AS rank,
    CASE WHEN s.statement_key = '' THEN NULL ELSE s.statement_text END AS statement,
    CASE WHEN s.statement_key = '' THEN NULL ELSE s.statement_key END AS statement_id,
    CASE WHEN $by IN ('few', 'site') THEN s.site_key END AS site,
    CASE WHEN $by = 'host' THEN s.host_key END AS host,
    s.service_key AS service,
    s.self_sum / 1e9 AS seconds,
    s.self_sum / nullif(s.whole, 0) AS share,
    s.call_sum AS calls,
    s.execution_sum AS executions,
    s.error_sum AS errors,
    s.row_sum AS fetched_rows,
    s.step_sum AS vm_steps,
    s.lock_sum / 1e9 AS lock_seconds,
    s.sync_sum / 1e9 AS sync_seconds,
    s.read_sum / 1e9 AS read_seconds,
    s.write_sum / 1e9 AS write_seconds,
    CASE WHEN ceil(p.total * CAST(0.5 AS DOUBLE)) = p.total OR p.p50 > s.longest THEN CAST(s.longest AS DOUBLE) ELSE p.p50 END AS p50_ns,
    CASE WHEN ceil(p.total * CAST(0.95 AS DOUBLE)) = p.total OR p.p95 > s.longest THEN CAST(s.longest AS DOUBLE) ELSE p.p95 END AS p95_ns,
    CASE WHEN ceil(p.total * CAST(0.99 AS DOUBLE)) = p.total OR p.p99 > s.longest THEN CAST(s.longest AS DOUBLE) ELSE p.p99 END AS p99_ns,
    CAST(s.longest AS DOUBLE) AS max_ns,
    s.statements,
    s.hosts,
    s.first_seen,
    s.last_seen,
    s.whole / 1e9 AS all_seconds,
    s.groups AS all_groups,
    s.vital_groups
FROM shown AS s
LEFT JOIN percentiles AS p ON p.statement_key = s.statement_key AND p.site_key = s.site_key AND p.host_key = s.host_key AND p.service_key = s.service_key
ORDER BY s.place, s.statement_key, s.site_key, s.host_key, s.service_key
