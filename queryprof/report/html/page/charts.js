// The timeline, histograms and distributions.

function timeline() {
  const { width_ns: width, start, calls, busy } = D.timeline;
  if (!start.length) return null;
  const most = Math.max(...busy) || 1;
  const end = Math.max(D.facts.run_ns, start.at(-1) + 1);
  const bars = start.map((from, at) => {
    const to = Math.min(at + 1 < start.length ? start[at + 1] : from + width, end);
    return svg(
      "rect",
      {
        x: (from / end) * 1000,
        width: Math.max(((to - from) / end) * 1000 - 1, 0.5),
        y: 60 - (busy[at] / most) * 60,
        height: (busy[at] / most) * 60,
      },
      svg(
        "title",
        {},
        `${duration(from)}: busy ${percent(busy[at])}, ${count(calls[at])} calls per second`,
      ),
    );
  });
  const label = `Database time over wall time: up to ${percent(most)} busy, over ${duration(end)}`;
  return h(
    "figure",
    { class: "card timeline" },
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
      `Database time over wall time. The highest bar is ${percent(most)} of the time.`,
    ),
  );
}

// Round values between two numbers, about so many.
function ticks(from, to, wanted) {
  const rough = (to - from) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
  const found = [];
  for (let value = Math.ceil(from / step) * step; value < to; value += step) found.push(value);
  return found;
}

// Labels below a chart, as [place, text]; one that would touch the one before is left out.
function axis(labels) {
  let last = -1;
  const apart = labels.filter(([place]) => place - last >= 0.14 && (last = place) >= 0);
  return h(
    "div",
    { class: "axis", "aria-hidden": "true" },
    apart.map(([place, label]) =>
      h("span", { css: { left: `${place * 100}%` }, class: place > 0.9 && "last" }, label)
    ),
  );
}

const bucketLow = (
  bucket,
) => (bucket < 16 ? bucket : (16 + (bucket % 16)) * 2 ** (Math.floor(bucket / 16) - 1));

// A logarithmic scale over durations, and its labels.
function logScale(least, most) {
  const from = Math.log10(Math.max(least, 1) * 0.9), to = Math.log10(Math.max(most, 2) * 1.1);
  const at = (ns) => (Math.log10(Math.max(ns, 1)) - from) / (to - from);
  const inside = (factors) => {
    const found = [];
    for (let power = Math.floor(from); power <= to; power++) {
      found.push(...factors.map((factor) => factor * 10 ** power));
    }
    return found.filter((ns) => at(ns) >= 0 && at(ns) <= 0.98);
  };
  let marks = inside([1]);
  if (marks.length < 3) marks = inside([1, 2, 5]);
  if (marks.length < 3) marks = ticks(10 ** from, 10 ** to, 5);
  return { at, labels: marks.map((ns) => [at(ns), duration(ns)]) };
}

// Marks from left to right, each in a lane of its own where it would be printed over the one before.
function lanes(marks) {
  let last = -1, lane = 0;
  return marks.map(([name, place]) => {
    lane = place - last < 0.06 ? lane + 1 : 0;
    last = place;
    return [name, place, lane];
  });
}

// Executions by their duration, with percentiles marked: [[name, ns], ...].
function histogram(buckets, counts, marks) {
  if (!buckets.length) return h("p", { class: "card dim" }, "Not known.");
  const scale = logScale(bucketLow(buckets[0]), bucketLow(buckets.at(-1) + 1));
  const most = Math.max(...counts);
  const bars = buckets.map((bucket, at) => {
    const low = scale.at(bucketLow(bucket)), high = scale.at(bucketLow(bucket + 1));
    const height = Math.max((counts[at] / most) * 110, 1);
    return svg("rect", {
      x: low * 1000,
      width: Math.max((high - low) * 1000 - 1, 2),
      y: 120 - height,
      height,
    }, svg("title", {}, `${duration(bucketLow(bucket))}: ${counted(counts[at], "execution")}`));
  });
  const known = marks.filter(([, ns]) => ns !== null);
  const label = `Executions by duration: ${
    known.map(([name, ns]) => `${name} ${duration(ns)}`).join(", ")
  }`;
  return h(
    "figure",
    { class: "card histogram" },
    h(
      "div",
      { class: "plot" },
      svg("svg", {
        viewBox: "0 0 1000 120",
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": label,
      }, bars),
      lanes(known.map(([name, ns]) => [name, scale.at(ns)])).map(([name, place, lane]) =>
        h("span", { class: `mark mark${lane}`, css: { left: `${place * 100}%` } }, name)
      ),
    ),
    axis(scale.labels),
  );
}

// Shares of durations up to a time, as steps: lines are [name, [ns, ...], [share, ...]].
function distribution(lines, label) {
  const known = lines.filter(([, ns]) => ns.length);
  if (!known.length) return null;
  const all = known.flatMap(([, ns]) => [ns[0], ns.at(-1)]);
  const scale = logScale(Math.min(...all), Math.max(...all));
  const paths = known.map(([name, ns, shares], at) => {
    let last = 120;
    const points = ns.map((value, i) => {
      const x = scale.at(value) * 1000, before = last;
      last = 120 - shares[i] * 120;
      return `L${x.toFixed(1)} ${before.toFixed(1)}L${x.toFixed(1)} ${last.toFixed(1)}`;
    });
    return svg(
      "path",
      { d: `M0 120${points.join("")}L1000 ${last}`, class: `line line${at}` },
      svg("title", {}, name),
    );
  });
  return h(
    "figure",
    { class: "card distribution" },
    svg("svg", {
      viewBox: "0 -2 1000 124",
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    }, paths),
    axis(scale.labels),
    h("figcaption", {}, known.map(([name], at) => h("span", { class: `key key${at}` }, name))),
  );
}
