-- Plans of a version that the one before had not, of statements that both have.
WITH earlier AS (SELECT DISTINCT statement_id, plan_id FROM plan WHERE version = $before),
known AS (SELECT DISTINCT statement_id FROM earlier),
later AS (
    SELECT
        statement_id, plan_id,
        max(statement) AS statement_text, max(tree) AS tree_text,
        count(DISTINCT host) AS host_count, min(window_start) AS first_seen
    FROM plan
    WHERE version = $after
    GROUP BY statement_id, plan_id
)
SELECT
    l.statement_text AS statement, l.statement_id, l.tree_text AS plan, l.host_count AS hosts, l.first_seen
FROM later AS l
JOIN known AS k ON k.statement_id = l.statement_id
LEFT JOIN earlier AS e ON e.statement_id = l.statement_id AND e.plan_id = l.plan_id
WHERE e.plan_id IS NULL
ORDER BY hosts DESC, l.statement_id, l.plan_id
