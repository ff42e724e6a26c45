// Where time is spent: call paths, outermost function first, down to statements.

const DEPTH = 24;

// The database time and, where cProfile has measured them, the times of all functions.
function icicle() {
  const trees = [["database time", D.tree], ["all time", D.functions]].filter(([, tree]) =>
    tree && tree.name.length > 1
  );
  if (!trees.length) return null;
  const place = h("div", { class: "card" });
  const buttons = trees.map(([words, tree]) =>
    h("button", { type: "button", onclick: () => show(words, tree) }, words)
  );
  const show = (words, tree) => {
    buttons.forEach((button) => button.setAttribute("aria-pressed", button.textContent === words));
    place.replaceChildren(...icicleOf(tree, words));
  };
  show(...trees[0]);
  return section(
    "from",
    "Callers",
    trees.length > 1 &&
      h("p", { class: "switch", role: "group", "aria-label": "Which time" }, buttons),
    place,
    h(
      "p",
      { class: "dim" },
      "Outermost functions are on top, statements at the bottom. Widths show time. Click or press Enter to zoom " +
        "in; use the arrow keys to move.",
      trees.length > 1 &&
        ' "All time" covers the main thread, measured by cProfile, which makes small functions slower. ' +
          "Below a function with several callers, the times are estimates.",
    ),
  );
}

function icicleOf(columns, words) {
  const { name, parent, self_ns: spent, statement, before_ns: before } = columns;
  const children = name.map(() => []);
  parent.forEach((of, number) => of >= 0 && children[of].push(number));
  const level = [0];
  for (let number = 1; number < name.length; number++) level.push(level[parent[number]] + 1);
  const label = (number) => (number ? text(name[number]) : `all ${words.replace("all ", "")}`);
  const tree = h("div", { class: "icicle", role: "tree", "aria-label": `Where ${words} goes` });
  const trail = h("p", { class: "dim", role: "status", "aria-live": "polite" });
  let root = 0, focused = 0;

  const kind = (number) =>
    statement[number] >= 0
      ? "statement"
      : name[number] === columns.smaller
      ? "smaller"
      : `f${name[number] % 4}`;

  function color(number) {
    if (!before || before[number] === null) return before ? "worse" : "";
    return changeClass(before[number], spent[number]);
  }

  function item(number, left, width, depth) {
    const share = spent[number] / (spent[0] || 1);
    const was = before
      ? `, was ${before[number] === null ? "not there" : duration(before[number])}`
      : "";
    const description = `${label(number)}: ${percent(share)}, ${duration(spent[number])}${was}`;
    return h(
      "div",
      {
        role: "treeitem",
        class: `node ${kind(number)} ${color(number)}`,
        title: description,
        "aria-label": description,
        "aria-level": level[number] + 1,
        "aria-selected": number === root ? "true" : "false",
        tabindex: number === focused ? 0 : -1,
        "data-node": number,
        css: { left: `${left * 100}%`, width: `${width * 100}%`, top: `${depth * 24}px` },
        onclick: () => zoom(number),
      },
      width > 0.015 ? `${label(number)} ` : "",
      width > 0.12 && h("span", {}, percent(share)),
    );
  }

  function draw() {
    const path = [];
    for (let number = parent[root]; number >= 0; number = parent[number]) path.unshift(number);
    const items = path.map((number, depth) => item(number, 0, 1, depth));
    let deepest = path.length;
    const put = (number, left, width, depth) => {
      if (width < 0.0015 || depth > path.length + DEPTH) return;
      items.push(item(number, left, width, depth));
      deepest = Math.max(deepest, depth);
      let at = left;
      for (const child of children[number]) {
        const part = spent[number] ? (width * spent[child]) / spent[number] : 0;
        put(child, at, part, depth + 1);
        at += part;
      }
    };
    put(root, 0, 1, path.length);
    tree.replaceChildren(...items);
    tree.style.height = `${(deepest + 1) * 24}px`;
    trail.textContent = root
      ? `${label(root)}: ${
        percent(spent[root] / (spent[0] || 1))
      } of the ${words}. Escape shows all.`
      : "";
  }

  // Shows a node and what is below it; of a statement that is shown already, its page.
  function zoom(number) {
    if (statement[number] >= 0) {
      location.hash = `#/s/${statement[number]}`;
      return;
    }
    root = focused = number;
    draw();
    focus(number);
  }

  function focus(number) {
    if (number === undefined || number < 0) return;
    focused = number;
    if (!tree.querySelector(`[data-node="${number}"]`)) {
      root = parent[number] >= 0 ? parent[number] : 0;
      draw();
    }
    for (const node of tree.children) node.tabIndex = Number(node.dataset.node) === number ? 0 : -1;
    tree.querySelector(`[data-node="${number}"]`)?.focus();
  }

  tree.addEventListener("keydown", (event) => {
    const siblings = children[parent[focused]] ?? [0];
    const at = siblings.indexOf(focused);
    const to = {
      ArrowDown: children[focused][0],
      ArrowUp: parent[focused],
      ArrowRight: siblings[at + 1],
      ArrowLeft: siblings[at - 1],
    }[event.key];
    if (to !== undefined) focus(to);
    else if (event.key === "Enter" || event.key === " ") zoom(focused);
    else if (event.key === "Escape" && root) zoom(0);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  draw();
  return [tree, trail];
}
