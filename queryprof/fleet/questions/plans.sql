-- Statements with more than one plan: how many hosts have each, the most usual first.
WITH used AS (
    SELECT
        statement_id, plan_id,
        max(statement) AS statement_text, max(tree) AS tree_text,
        count(DISTINCT host) AS host_count, min(host) AS a_host,
        min(window_start) AS first_seen, max(window_end) AS last_seen
    FROM plan
    GROUP BY statement_id, plan_id
),
several AS (
    SELECT
        used.*,
        count(*) OVER (PARTITION BY statement_id) AS plans,
        row_number() OVER (PARTITION BY statement_id ORDER BY host_count DESC, plan_id) AS place
    FROM used
)
SELECT
    statement_text AS statement, statement_id, CAST(place AS INTEGER) AS place, plans, tree_text AS plan, plan_id,
    host_count AS hosts, a_host AS host, first_seen, last_seen
FROM several
WHERE plans > 1
ORDER BY plans DESC, statement_id, place, plan_id
