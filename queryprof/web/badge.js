// The badge: a button that lists what each request of this page executed.
(() => {
  const own = document.currentScript;
  if (!own || window.__queryprofBadge) return;
  window.__queryprofBadge = true;
  const base = own.src.replace(/badge\.js.*$/, "");
  const first = Number(own.dataset.request) || 1;
  let latest = 0;

  const host = document.createElement("div");
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`
    :host { all: initial; }
    section { position: fixed; right: 12px; bottom: 12px; z-index: 2147483647; max-width: min(34rem, calc(100vw - 24px));
      font: 13px/1.45 system-ui, sans-serif; color: #f5f5f5; text-align: left; }
    button, ol { background: #1d2430; color: #f5f5f5; border: 1px solid #6b7688; border-radius: 8px; }
    button { float: right; font: inherit; padding: 4px 10px; cursor: pointer; }
    button:focus-visible, a:focus-visible { outline: 2px solid #ffd166; outline-offset: 2px; }
    button.warn { border-color: #ffd166; }
    ol { clear: both; list-style: none; margin: 0 0 6px; padding: 6px 12px; max-height: 60vh; overflow: auto; }
    li { padding: 4px 0; overflow-wrap: anywhere; }
    li + li { border-top: 1px solid #465063; }
    a { color: #9cd0ff; }
    p { margin: 0; }
    .warn-text { color: #ffd166; }
    code { font: 12px/1.4 ui-monospace, monospace; color: #d7dce5; }
    [hidden] { display: none; }`);
  root.adoptedStyleSheets = [sheet];

  const section = document.createElement("section");
  section.setAttribute("aria-label", "queryprof");
  const list = document.createElement("ol");
  list.id = "requests";
  list.hidden = true;
  list.tabIndex = 0;
  list.setAttribute("aria-label", "requests since this page was opened");
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("aria-expanded", "false");
  button.setAttribute("aria-controls", "requests");
  button.textContent = "queryprof ...";
  button.addEventListener("click", () => {
    list.hidden = !list.hidden;
    button.setAttribute("aria-expanded", String(!list.hidden));
  });
  section.append(list, button);
  root.append(section);
  let isGone = false;
  const kept = new MutationObserver(() => {
    if (document.body && !host.isConnected && !isGone) place();
  });
  const place = () => {
    document.body.append(host);
    kept.observe(document.body, { childList: true });
  };
  kept.observe(document.documentElement, { childList: true }); // a page may replace its body
  document.body ? place() : addEventListener("DOMContentLoaded", place);

  const seen = [];
  const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;
  const text = (name, content, kind) => {
    const made = document.createElement(name);
    made.textContent = content;
    if (kind) made.className = kind;
    return made;
  };

  function add(request) {
    seen.push(request);
    if (request.number !== first && !request.queries && !request.unknown) return;
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = `${base}request/${request.number}`;
    link.target = "_blank";
    link.rel = "noopener";
    link.textContent = `${request.name}${request.status ? ` ${request.status}` : ""}`;
    item.append(link);
    const queries = plural(request.queries, "query", "queries");
    item.append(text("p", `${queries}, ${request.database_ms} ms of ${request.total_ms} ms`));
    if (request.unknown) item.append(text("p", `unknown: ${request.unknown}`, "warn-text"));
    for (const one of request.repeats) {
      item.append(text("p", `a query in a loop: ${one.executions} times at ${one.place}`, "warn-text"));
      item.append(text("code", one.statement));
    }
    if (request.worst && !request.repeats.length) {
      item.append(text("p", `most time: ${request.worst.ms} ms at ${request.worst.place}`));
      item.append(text("code", request.worst.statement));
    }
    list.append(item);
  }

  function sum() {
    const queries = seen.reduce((all, one) => all + one.queries, 0);
    const ms = seen.reduce((all, one) => all + one.database_ms, 0);
    const loops = seen.reduce((all, one) => all + one.repeats.length, 0);
    const more = loops ? `, ${plural(loops, "query in a loop", "queries in loops")}` : "";
    const of = seen.length > 1 ? ` in ${seen.length} requests` : "";
    button.textContent = `${plural(queries, "query", "queries")}, ${ms.toFixed(1)} ms${of}${more}`;
    button.classList.toggle("warn", loops > 0);
    host.dataset.requests = String(seen.length);
  }

  let isLoading = false, again = false, late = 0;
  async function load() {
    if (isLoading) { again = true; return; }
    isLoading = true;
    try {
      do {
        again = false;
        const response = await fetch(`${base}requests?first=${first}&since=${latest}`, { cache: "no-store" });
        if (!response.ok) return;
        const found = await response.json();
        for (const request of found) {
          latest = Math.max(latest, request.ended);
          add(request);
        }
        sum();
        if (found.length) late = 0;
        else if (late < 4) setTimeout(load, 150 * 2 ** late++); // its end comes after its response's
      } while (again);
    } catch {
      // the server is gone, or a policy forbids it: the page goes on without
      if (!seen.length) {
        isGone = true;
        host.remove();
      }
    } finally {
      isLoading = false;
    }
  }

  const isOther = (entry) => !entry.name.startsWith(base);
  new PerformanceObserver((entries) => {
    if (entries.getEntries().some(isOther)) { late = 0; load(); }
  }).observe({ type: "resource", buffered: true });
  if (document.readyState === "complete") load();
  addEventListener("load", load);
  load();
})();
