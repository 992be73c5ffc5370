// The address of the page restores its state; inputs are remembered in this browser.

const MAX_LINK_CHARACTERS = 12_000; // of an input, such as a small picture
const MAX_HISTORY = 20;
const HISTORY_KEY = "regard-history";

function readLink() {
  const link = new URLSearchParams(location.hash.slice(1));
  const read = (name) => {
    try { return JSON.parse(link.get(name)); } catch { return null; }
  };
  return { run: link.get("run"), other: link.get("other"), input: read("input"), example: read("example"),
    layer: read("layer"), head: read("head"), words: read("words") };
}

// Write the state into the address; false if the input is too large for it.
function writeLink(state) {
  const link = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value === null || value === undefined || value === "") continue;
    link.set(name, name === "run" || name === "other" ? value : JSON.stringify(value));
  }
  const isShort = (link.get("input") ?? "").length <= MAX_LINK_CHARACTERS;
  if (!isShort) link.delete("input");
  window.history.replaceState(null, "", `#${link}`);
  return isShort;
}

function inputHistory(run, update) {
  try {
    const all = JSON.parse(localStorage.getItem(HISTORY_KEY) ?? "{}");
    const own = all[run.name] ?? [];
    if (update) {
      const text = JSON.stringify(update);
      if (text.length > MAX_LINK_CHARACTERS) return own;
      all[run.name] = [update, ...own.filter((values) => JSON.stringify(values) !== text)].slice(0, MAX_HISTORY);
      localStorage.setItem(HISTORY_KEY, JSON.stringify(all));
    }
    return all[run.name] ?? [];
  } catch { return []; } // a browser may forbid storage
}

// A short name of the values of a form, for a menu.
function inputTitle(values, index) {
  const texts = Object.values(values).flat().filter((text) => text);
  const text = texts[0] ?? "";
  if (!text || text.startsWith("data:")) return `Picture ${index + 1}`;
  return text.length > 56 ? `${text.slice(0, 55)}…` : text;
}
