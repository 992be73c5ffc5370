"use strict";
// What may stand beside a map: links of people, step by step with what else could come, what a search tried.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

// Links of people -----------------------------------------------------------------------------------------------------

const linked = (kind) => new Set(data.gold[kind].map(([query, key]) => `${query} ${key}`));

function looked() { // by words, [query, key]: what each looked at most, of what can have links
  const pieces = dense(layers[state.layer], state.head);
  const [table, columns] = [byWords(pieces), data.keys.words.length];
  const best = (query) => data.gold.keys.reduce((a, b) => table[query * columns + b] > table[query * columns + a] ? b : a);
  if (!data.gold.keys.length) return [];
  return data.gold.queries.map((query) => [query, best(query)]).filter(([query, key]) => table[query * columns + key] > 0);
}

function goldMarks(over, { left, top, size }) { // a frame: a link of people; a dot: looked at most; a cross: that is no link
  const [sure, possible] = [linked("sure"), linked("possible")];
  const guessed = new Set(looked().map(([query, key]) => `${query} ${key}`));
  const [rows, columns] = state.words ? [data.queries.words, data.keys.words] : [data.queries.tokens, data.keys.tokens];
  const word = (side, n) => state.words ? n : side.word[n];
  rows.forEach((_, q) => columns.forEach((__, k) => {
    const pair = `${word(data.queries, q)} ${word(data.keys, k)}`;
    const [x, y] = [left + k * size, top + q * size];
    if (sure.has(pair) || possible.has(pair)) {
      const dashes = sure.has(pair) ? {} : { "stroke-dasharray": "3 2" };
      svg("rect", { x: x + 1, y: y + 1, width: size - 2, height: size - 2, fill: "none", stroke: "var(--mark)", "stroke-width": 2, ...dashes, class: "gold" }, over);
    }
    if (!guessed.has(pair)) return;
    const right = sure.has(pair) || possible.has(pair);
    const middle = { x: x + size / 2, y: y + size / 2 + 4, "text-anchor": "middle", "font-size": 12, fill: "var(--mark)" };
    svg("text", middle, over, right ? "●" : "✕");
  }));
}

function goldTold() {
  if (!data.gold) return;
  const [sure, possible, guessed] = [linked("sure"), linked("possible"), looked().map((pair) => pair.join(" "))];
  const hits = guessed.filter((pair) => sure.has(pair)).length;
  const right = hits + guessed.filter((pair) => possible.has(pair)).length;
  const error = 1 - (hits + right) / Math.max(1, guessed.length + sure.size);
  $("gold").textContent = `Against people's links (framed; possible ones dashed): ${right} found (●), ${guessed.length - right} false (✕), ${sure.size - hits} missed; AER ${error.toFixed(3)}`;
}

// Step by step --------------------------------------------------------------------------------------------------------

function element(name, properties, parent) {
  const made = Object.assign(document.createElement(name), properties);
  if (parent) parent.append(made);
  return made;
}

function steps(into) { // by pieces: choices are of pieces
  const table = dense(layers[state.layer], state.head);
  const [rows, columns] = [data.queries.tokens, data.keys.tokens];
  const now = Math.min(state.row, rows.length - 1);
  const board = element("div", { className: "steps" }, into);
  const read = element("p", { dir: "auto" }, board);
  columns.forEach((token, k) => {
    const weight = table[now * columns.length + k];
    const one = element("span", { className: "word", textContent: token, title: percent(weight) }, read);
    one.style.background = css(colour(Math.sqrt(weight)));
    one.style.color = weight > 0.3 ? "#000" : "#fff";
  });
  const written = element("p", { dir: "auto" }, board);
  rows.forEach((token, q) => {
    const when = q === now ? "now" : q < now ? "" : "later";
    const one = element("button", { className: `word ${when}`, textContent: token }, written);
    one.addEventListener("click", () => { state.row = q; show(); });
  });
  const list = element("div", { className: "choices", role: "list" }, board);
  for (const [token, share] of data.choices[now]) {
    const said = token === rows[now] ? "said" : "";
    element("span", { className: said, textContent: token, role: "listitem" }, list);
    element("div", { className: "bar" }, list).style.width = `${100 * share}%`;
    element("span", { textContent: percent(share) }, list);
  }
}

// What a search tried -------------------------------------------------------------------------------------------------

function tree(into) { // a column for each step; rows in the order of the likeliest
  const depth = [];
  data.tree.forEach(([parent], n) => { depth[n] = parent < 0 ? 0 : depth[parent] + 1; });
  const columns = Array.from({ length: Math.max(...depth) + 1 }, () => []);
  data.tree.forEach((_, n) => columns[depth[n]].push(n));
  const [wide, tall] = [96, 26];
  const place = [];
  columns.forEach((some, x) => {
    some.sort((a, b) => data.tree[b][2] - data.tree[a][2]);
    some.forEach((n, y) => { place[n] = [16 + x * wide, 20 + y * tall]; });
  });
  const rows = Math.max(...columns.map((some) => some.length));
  const board = svg("svg", { width: 32 + columns.length * wide, height: 24 + rows * tall, role: "img", "aria-label": "What the search went on with, step by step" }, into);
  data.tree.forEach(([parent, , , best], n) => {
    if (parent < 0) return;
    const [[x1, y1], [x2, y2]] = [place[parent], place[n]];
    svg("path", { d: `M${x1 + 70},${y1} C${x1 + 84},${y1} ${x2 - 22},${y2} ${x2 - 6},${y2}`, fill: "none", stroke: best ? "var(--mark)" : "var(--faint)", "stroke-width": best ? 2 : 0.7 }, board);
  });
  data.tree.forEach(([, token, logProb, best], n) => {
    const [x, y] = place[n];
    const made = svg("text", { x, y: y + 4, "font-size": 12, "font-weight": best ? 700 : 400, fill: best ? "var(--mark)" : "currentColor" }, board, cut(token));
    svg("title", {}, made, `${token}: log p ${logProb.toFixed(2)}`);
  });
}
