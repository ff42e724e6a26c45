// Numbers and SQL as text: the same digits as in the reports for a terminal.

const UNKNOWN = "?";
const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const WORDS = new Set(
  ("SELECT FROM WHERE AND OR NOT IN IS NULL LIKE GLOB BETWEEN EXISTS AS ON USING JOIN LEFT RIGHT FULL " +
    "INNER OUTER CROSS NATURAL GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET UNION ALL EXCEPT INTERSECT DISTINCT CASE WHEN " +
    "THEN ELSE END INSERT INTO VALUES UPDATE SET DELETE REPLACE CREATE TABLE TEMP INDEX UNIQUE VIEW TRIGGER DROP ALTER ADD COLUMN " +
    "PRIMARY KEY REFERENCES DEFAULT CHECK BEGIN COMMIT ROLLBACK SAVEPOINT RELEASE PRAGMA WITH RECURSIVE RETURNING IF OVER " +
    "PARTITION CONFLICT DO NOTHING ATTACH DETACH ANALYZE VACUUM IMMEDIATE EXCLUSIVE").split(" "),
);

const grouped = (value, digits = 0) =>
  value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });

function duration(ns) {
  if (ns === null || ns === undefined) return UNKNOWN;
  for (const [size, unit] of UNITS) {
    const value = ns / size;
    if (value >= 0.9995 || unit === "ns") {
      const digits = unit === "ns" || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
      return `${grouped(value, digits)} ${unit}`;
    }
  }
  return UNKNOWN;
}

const count = (value) => (value === null || value === undefined ? UNKNOWN : grouped(value));

const average = (value) =>
  value === null || value === undefined
    ? UNKNOWN
    : grouped(value, value >= 100 || Number.isInteger(value) ? 0 : 1);

const percent = (share) => `${grouped(share * 100, 1)}%`;

const counted = (value, noun) => `${grouped(value)} ${noun}${value === 1 ? "" : "s"}`;

// What a figure changed by, in words.
function change(before, after) {
  if (before === null || before === undefined) return "new";
  if (!before) return after ? "new" : "=";
  const factor = after / before;
  if (Math.abs(factor - 1) < 0.005) return "=";
  return `${factor > 1 ? "+" : "−"}${grouped(Math.abs(factor - 1) * 100, factor < 2 ? 1 : 0)}%`;
}

// SQL with its keywords marked.
const sql = (text) =>
  text.split(/([A-Za-z_]+)/).map((part, at) =>
    at % 2 && WORDS.has(part.toUpperCase()) ? h("b", {}, part) : part
  );
