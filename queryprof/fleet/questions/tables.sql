-- Which versions there are spans and plans of.
WITH spans AS (SELECT DISTINCT version FROM span),
planned AS (SELECT DISTINCT version FROM plan)
SELECT 'span' AS kind, version FROM spans
UNION ALL
SELECT 'plan' AS kind, version FROM planned
ORDER BY kind, version NULLS FIRST
