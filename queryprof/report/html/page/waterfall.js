// The slowest requests, call by call, and the stalls of a loop by their time.

function waterfalls() {
  if (!D.slowest.length) return h("p", { class: "card dim" }, D.not_recorded);
  return [
    h("h3", {}, "The slowest, call by call"),
    D.slowest.map((span, at) => {
      const rows = h("div", {}); // filled when it is opened: a page has thousands of runs
      const details = h(
        "details",
        {
          class: "card span",
          ontoggle: () => {
            if (details.open && !rows.childElementCount) rows.append(...[waterfall(span)].flat());
          },
        },
        h(
          "summary",
          {},
          h("b", {}, text(span.name)),
          ` ${duration(span.duration_ns)}, ${counted(span.executions, "execution")}, `,
          `${percent(span.database_ns / (span.duration_ns || 1))} in the database`,
          h(
            "span",
            { class: "dim" },
            ` · ${duration(span.start)} after the start`,
            span.status !== null && ` · status ${span.status}`,
            span.failed && " · failed",
          ),
        ),
        rows,
      );
      details.open = at === 0;
      return details;
    }),
  ];
}

// A row for each run of calls with one statement and call path: its bar is from the first call's
// beginning to the last one's end, filled as much as it was in the database.
function waterfall(span) {
  const runs = span.runs, whole = span.duration_ns || 1;
  const why = span.why.map((words) => h("p", {}, text(words)));
  if (!runs.statement.length) return [...why, h("p", { class: "dim" }, text(span.without_runs))];
  const place = (ns) => Math.min(Math.max(ns / whole, 0), 1) * 100;
  return [
    ...why,
    h(
      "ol",
      { class: "runs" },
      runs.statement.map((statement, at) => {
        const start = runs.start_ns[at], took = Math.max(runs.end_ns[at] - start, 0);
        const busy = Math.min(runs.self_ns[at] / (took || 1), 1);
        const words = `${duration(start)} after its beginning, for ${duration(took)}: ${
          duration(runs.self_ns[at])
        } in the database`;
        return h(
          "li",
          {},
          h(
            "span",
            { class: "track", title: words },
            h("span", {
              class: "run",
              css: {
                left: `${place(start)}%`,
                width: `${Math.max(place(start + took) - place(start), 0.3)}%`,
              },
            }, h("span", { class: "busy", css: { height: `${busy * 100}%` } })),
          ),
          h("span", { class: "right" }, duration(runs.self_ns[at])),
          h(
            "span",
            { class: "right" },
            runs.executions[at] > 1 ? `${grouped(runs.executions[at])} ×` : "",
          ),
          h(
            "span",
            { class: "what" },
            mention(statement, runs.text[at]),
            h("br"),
            h(
              "span",
              { class: "dim" },
              siteText(runs.site[at]),
              " · ",
              counted(runs.rows[at], "row"),
            ),
          ),
        );
      }),
    ),
    axis(ticks(0, whole, 3).map((value) => [value / whole, value ? duration(value) : "0"])),
    h(
      "p",
      { class: "dim" },
      "A bar spans the first to the last call. Its filled part is the time in the database.",
    ),
  ];
}

function stallTimes(events) {
  if (!events.start.length) return null;
  const end = Math.max(
    D.facts.run_ns,
    ...events.start.map((start, at) => start + events.duration_ns[at]),
  );
  const most = Math.max(...events.duration_ns);
  const bars = events.start.map((start, at) => {
    const height = Math.max((events.duration_ns[at] / most) * 60, 3);
    return svg(
      "rect",
      {
        x: (start / end) * 1000,
        width: Math.max((events.duration_ns[at] / end) * 1000, 3),
        y: 60 - height,
        height,
      },
      svg(
        "title",
        {},
        `${duration(start)}: ${duration(events.duration_ns[at])}, ${siteText(events.site[at])}`,
      ),
    );
  });
  const label = `Stalls over wall time: the longest ${duration(most)}`;
  return h(
    "figure",
    { class: "card timeline stalls" },
    svg("svg", {
      viewBox: "0 0 1000 60",
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    }, bars),
    axis(ticks(0, end, 5).map((value) => [value / end, value ? duration(value) : "start"])),
    h(
      "figcaption",
      {},
      `The ${counted(events.start.length, "longest stall")} over wall time. The highest bar is ${
        duration(most)
      }.`,
    ),
  );
}
