"use strict";
// Annotations of a map: gold links, steps with alternative tokens, the tree of a search.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

// Gold links ----------------------------------------------------------------------------------------------------

const linkSet = (kind) => new Set(data.gold[kind].map(([query, key]) => `${query} ${key}`));

function strongestLinks() { // [query word, key word] of the greatest weight, among words that can have links
  const subwordWeights = dense(layers[state.layer], state.head);
  const [table, columns] = [byWords(subwordWeights), data.keys.words.length];
  const best = (query) => data.gold.keys.reduce((a, b) => table[query * columns + b] > table[query * columns + a] ? b : a);
  if (!data.gold.keys.length) return [];
  return data.gold.queries.map((query) => [query, best(query)]).filter(([query, key]) => table[query * columns + key] > 0);
}

function drawGoldLinks(overlay, { left, top, size }) { // frame: gold link; dot: correct prediction; cross: wrong prediction
  const [sure, possible] = [linkSet("sure"), linkSet("possible")];
  const predicted = new Set(strongestLinks().map(([query, key]) => `${query} ${key}`));
  const [rows, columns] = state.words ? [data.queries.words, data.keys.words] : [data.queries.tokens, data.keys.tokens];
  const word = (side, n) => state.words ? n : side.word[n];
  rows.forEach((_, q) => columns.forEach((__, k) => {
    const pair = `${word(data.queries, q)} ${word(data.keys, k)}`;
    const [x, y] = [left + k * size, top + q * size];
    if (sure.has(pair) || possible.has(pair)) {
      const dashes = sure.has(pair) ? {} : { "stroke-dasharray": "3 2" };
      svg("rect", { x: x + 1, y: y + 1, width: size - 2, height: size - 2, fill: "none", stroke: "var(--mark)", "stroke-width": 2, ...dashes, class: "gold" }, overlay);
    }
    if (!predicted.has(pair)) return;
    const isCorrect = sure.has(pair) || possible.has(pair);
    const center = { x: x + size / 2, y: y + size / 2 + 4, "text-anchor": "middle", "font-size": 12, fill: "var(--mark)" };
    svg("text", center, overlay, isCorrect ? "●" : "✕");
  }));
}

function showGoldScores() {
  if (!data.gold) return;
  const [sure, possible, predicted] = [linkSet("sure"), linkSet("possible"), strongestLinks().map((pair) => pair.join(" "))];
  const hits = predicted.filter((pair) => sure.has(pair)).length;
  const correct = hits + predicted.filter((pair) => possible.has(pair)).length;
  const aer = 1 - (hits + correct) / Math.max(1, predicted.length + sure.size);
  $("gold").textContent = `Gold links (frames; dashed: possible): ${correct} found (●), ${predicted.length - correct} false (✕), ${sure.size - hits} missed; AER ${aer.toFixed(3)}`;
}

// Steps ---------------------------------------------------------------------------------------------------------

function element(name, properties, parent) {
  const node = Object.assign(document.createElement(name), properties);
  if (parent) parent.append(node);
  return node;
}

function drawSteps(parent) { // by subwords, as the alternatives are
  const table = dense(layers[state.layer], state.head);
  const [rows, columns] = [data.queries.tokens, data.keys.tokens];
  const current = Math.min(state.row, rows.length - 1);
  const board = element("div", { className: "steps" }, parent);
  const keyLine = element("p", { dir: "auto" }, board);
  columns.forEach((token, k) => {
    const weight = table[current * columns.length + k];
    const word = element("span", { className: "word", textContent: token, title: percent(weight) }, keyLine);
    word.style.background = css(color(Math.sqrt(weight)));
    word.style.color = weight > 0.3 ? "#000" : "#fff";
  });
  const queryLine = element("p", { dir: "auto" }, board);
  rows.forEach((token, q) => {
    const position = q === current ? "now" : q < current ? "" : "later";
    const button = element("button", { className: `word ${position}`, textContent: token }, queryLine);
    button.addEventListener("click", () => { state.row = q; show(); });
  });
  const list = element("div", { className: "choices", role: "list" }, board);
  for (const [token, probability] of data.choices[current]) {
    const className = token === rows[current] ? "chosen" : "";
    element("span", { className, textContent: token, role: "listitem" }, list);
    element("div", { className: "bar" }, list).style.width = `${100 * probability}%`;
    element("span", { textContent: percent(probability) }, list);
  }
}

// Tree of a search ----------------------------------------------------------------------------------------------

function drawTree(parent) { // a column for each step, the likeliest node first
  const depth = [];
  data.tree.forEach(([parent], n) => { depth[n] = parent < 0 ? 0 : depth[parent] + 1; });
  const columns = Array.from({ length: Math.max(...depth) + 1 }, () => []);
  data.tree.forEach((_, n) => columns[depth[n]].push(n));
  const [columnWidth, rowHeight] = [96, 26];
  const position = [];
  columns.forEach((nodes, x) => {
    nodes.sort((a, b) => data.tree[b][2] - data.tree[a][2]);
    nodes.forEach((n, y) => { position[n] = [16 + x * columnWidth, 20 + y * rowHeight]; });
  });
  const rows = Math.max(...columns.map((nodes) => nodes.length));
  const board = svg("svg", { width: 32 + columns.length * columnWidth, height: 24 + rows * rowHeight, role: "img", "aria-label": "Hypotheses that the search extended, step by step" }, parent);
  data.tree.forEach(([parent, , , best], n) => {
    if (parent < 0) return;
    const [[x1, y1], [x2, y2]] = [position[parent], position[n]];
    svg("path", { d: `M${x1 + 70},${y1} C${x1 + 84},${y1} ${x2 - 22},${y2} ${x2 - 6},${y2}`, fill: "none", stroke: best ? "var(--mark)" : "var(--faint)", "stroke-width": best ? 2 : 0.7 }, board);
  });
  data.tree.forEach(([, token, logProb, best], n) => {
    const [x, y] = position[n];
    const node = svg("text", { x, y: y + 4, "font-size": 12, "font-weight": best ? 700 : 400, fill: best ? "var(--mark)" : "currentColor" }, board, cut(token));
    svg("title", {}, node, `${token}: log p ${logProb.toFixed(2)}`);
  });
}
