// Elements. Text becomes text nodes, whatever is in it; nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

const h = (tag, attributes, ...children) =>
  filled(document.createElement(tag), attributes, children);

const svg = (tag, attributes, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

// `css` are properties of the element's style (a style attribute would be refused), `on...` its
// listeners; an attribute that is null or false is left out.
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "css") Object.assign(element.style, value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value);
    }
  }
  element.append(
    ...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

const section = (id, title, ...children) =>
  h(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, title),
    ...children,
  );

// A table: columns are [title, is a number]; a cell is text or an element.
const plainTable = (label, columns, rows) =>
  h(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": label },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map(([title, right]) =>
            h("th", { scope: "col", class: right && "right" }, title)
          ),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((cells) =>
          h("tr", {}, cells.map((cell, at) => h("td", { class: columns[at][1] && "right" }, cell)))
        ),
      ),
    ),
  );
