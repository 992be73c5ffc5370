// Beside the stage: the weights of the selected row, and all heads in miniature. Below it: a table of all numbers.

const MAX_TABLE_CELLS = 20000;

function drawDetails(viewer, parent) {
  parent.replaceChildren();
  if (viewer.isPicture || viewer.state.view === "heads" || viewer.state.view === "search") {
    parent.hidden = !viewer.isPicture || viewer.headCount < 2 || viewer.data.layers_are_words || viewer.state.view !== "picture";
  } else parent.hidden = false;
  if (parent.hidden) return null;
  if (!viewer.isPicture) {
    element("p", { class: "heading row-title" }, parent);
    element("ol", { class: "bars" }, parent);
    showRowBars(viewer, parent);
  }
  if (viewer.headCount < 2) return null;
  element("p", { class: "heading" }, parent, `All ${viewer.headCount} ${viewer.headNoun}s`);
  return drawMiniature(viewer, parent);
}

function showRowBars(viewer, parent) {
  const { state, weights, data, theme } = viewer;
  const title = parent.querySelector(".row-title");
  if (!title) return;
  const [rows, columns] = labelsOf(viewer);
  const titles = { pool: `${capitalized(rows[state.row])}: most weight`, memory: `Step ${state.row + 1}, ${quoted(rows[state.row])}, uses` };
  title.textContent = titles[data.kind] ?? `${quoted(rows[state.row])} attends to`;
  const best = strongestKeys(weights, columns.length, state.row, 6);
  const shown = best.reduce((sum, [, weight]) => sum + weight, 0);
  const total = range(columns.length).reduce((sum, k) => sum + weights[state.row * columns.length + k], 0);
  const items = best.map(([key, weight]) => [keyName(viewer, columns[key]), weight, key]);
  if (total - shown > 0.005) items.push([`${columns.length - best.length} others`, total - shown, null]);
  const list = parent.querySelector(".bars");
  list.replaceChildren(...items.map(([text, weight, key]) => {
    const item = element("li", { class: key === null ? "rest" : "", "data-current": key !== null && key === state.key ? "yes" : null });
    element("span", { class: "name", title: text }, item, text);
    const bar = element("i", { class: "bar" }, item);
    bar.style.setProperty("--share", weight);
    if (key !== null) bar.style.setProperty("--fill", weightColor(theme, Math.max(weight, 0.2), 1));
    element("span", { class: "number" }, item, percent(weight));
    return item;
  }));
}

function showTable(viewer) {
  const { table, numbers } = viewer.parts;
  numbers.replaceChildren();
  if (!table.open) return;
  const [rows, columns] = labelsOf(viewer);
  if (rows.length * columns.length > MAX_TABLE_CELLS) {
    numbers.textContent = "Too large for a table; save the map as .csv instead.";
    return;
  }
  const node = element("table", {}, numbers);
  element("caption", {}, node, `${headName(viewer)}: weights`);
  const head = node.createTHead().insertRow();
  element("td", {}, head, "");
  columns.forEach((token) => element("th", { scope: "col" }, head, token));
  const body = node.createTBody();
  rows.forEach((token, q) => {
    const row = body.insertRow();
    element("th", { scope: "row" }, row, token);
    columns.forEach((_, k) => element("td", {}, row, viewer.weights[q * columns.length + k].toFixed(2)));
  });
}
