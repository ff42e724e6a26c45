// The data of the page: columns and one table of strings, made by page_data.py.

let D = null;

const text = (number) => (number === null || number < 0 ? "" : D.strings[number]);

const siteText = (site) => {
  if (site === null || site < 0) return "(unknown)";
  const name = text(D.sites.function[site]);
  const shown = /^[<(]/.test(name) ? name : `${name}()`;
  const file = text(D.sites.file[site]);
  return file ? `${shown} ${file}:${D.sites.line[site] || UNKNOWN}` : shown;
};

const statementText = (number) => text(D.statements.text[number]);

const statementLink = (number, ...children) =>
  h(
    "a",
    { href: `#/s/${number}`, class: "sql" },
    children.length ? children : sql(statementText(number).slice(0, 300)),
  );

// What follows a statement's name in lists: a link when the page has it, else its text.
const mention = (
  number,
  otherwise,
) => (number >= 0 ? statementLink(number) : h("span", { class: "sql" }, sql(text(otherwise))));

async function load() {
  const element = document.getElementById("data");
  if (element.dataset.encoding !== "deflate") return JSON.parse(element.textContent);
  if (typeof DecompressionStream === "undefined") return null;
  const packed = Uint8Array.from(
    atob(element.textContent.trim()),
    (character) => character.charCodeAt(0),
  );
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
