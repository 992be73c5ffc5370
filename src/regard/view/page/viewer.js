"use strict";
// An attention map: layers of heads with sparse rows. Nothing is fetched; tokens are only set as text.
//
//   const viewer = createViewer(container, data, options);   // data: viewer_data() of Python
//   viewer.show(data); viewer.state(); viewer.select(query); viewer.destroy();
//
// options: compact (no toolbar of downloads), actions [{label, run(selection)}], onSelect(selection),
// onQueryClick(query, anchorElement), storageKey, keyTarget (where keys are heard; default: the container).
// selection: {layer, head, query, key, words}; layers and heads count from 0, head may be "mean" or "max".

const VIEWER_PARTS = `
  <div class="tools" role="toolbar" aria-label="Controls">
    <div role="tablist" aria-label="View">
      <button role="tab" data-part="tab-matrix" data-view="matrix">Matrix</button>
      <button role="tab" data-part="tab-lines" data-view="lines">Lines</button>
      <button role="tab" data-part="tab-model" data-view="model">All heads</button>
      <button role="tab" data-part="tab-steps" data-view="steps" hidden>Steps</button>
      <button role="tab" data-part="tab-tree" data-view="tree" hidden>Search</button>
    </div>
    <label>Layer <select data-part="layer"></select></label>
    <label>Head <select data-part="head"></select></label>
    <label data-part="words-label"><input type="checkbox" data-part="words"> words</label>
    <label>Find <input type="search" data-part="find" size="10" placeholder="token"></label>
    <button data-part="theme" title="Light or dark (d)">◐</button>
    <button data-part="png">PNG</button>
    <button data-part="svg">SVG</button>
  </div>

  <section data-part="view" tabindex="0" aria-describedby="status"></section>
  <p data-part="status" role="status" aria-live="polite"></p>
  <p data-part="statistics"></p>
  <p data-part="opening"></p>
  <p data-part="gold"></p>
  <details>
    <summary>Keyboard</summary>
    <p><kbd>←</kbd> <kbd>→</kbd> head, <kbd>↑</kbd> <kbd>↓</kbd> layer, <kbd>1</kbd> to <kbd>5</kbd> view,
      <kbd>j</kbd> <kbd>k</kbd> next and previous row, <kbd>w</kbd> words or subwords, <kbd>/</kbd> find, <kbd>d</kbd> light or dark</p>
  </details>
  <details data-part="table-of">
    <summary>Table</summary>
    <div data-part="table"></div>
  </details>
`;

function createViewer(container, data, options = {}) {
  let map = mountMap(container, data, options);
  return {
    async show(newData) {
      const kept = map.state();
      map.destroy();
      map = mountMap(container, newData, options, kept);
      await map.ready;
    },
    state: () => map.state(),
    select: (query) => map.select(query),
    destroy() { map.destroy(); container.replaceChildren(); container.classList.remove("viewer"); },
    get ready() { return map.ready; },
  };
}

function mountMap(container, data, options, kept = null) {
container.classList.add("viewer");
container.innerHTML = VIEWER_PARTS; // fixed text, no token
const $ = (part) => container.querySelector(`[data-part="${part}"]`);
// Annotations of a map: gold links, steps with alternative tokens, the tree of a search.


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
    button.addEventListener("click", () => { state.row = q; show(); options.onQueryClick?.(q, button); });
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


const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]]; // viridis: readable in gray
const CELL = { max: 28, min: 3, labeled: 11 }; // pixels; labels need cells of at least 11
const GRID = data.kind === "grid"; // patches of an image, attended to by the reader of the map, or by a word
const HAS_CHOICE = data.layers.length > 1 || data.layers[0].heads > 1;
const OPENING = HAS_CHOICE ? { layer: data.clearest.layer, head: data.clearest.head } : { layer: 0, head: "mean" };
const state = { view: "matrix", ...OPENING, words: false, row: 0, key: null, find: "" };
if (kept) {
  const { layer, head, words, view } = kept;
  if (layer < data.layers.length && (typeof head === "string" || head < data.layers[layer].heads)) Object.assign(state, { layer, head, words, view });
}
const layers = []; // {name, heads, indices: Uint16Array, values: Uint8Array}

async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function readLayers() {
  const bytes = await inflate(data.packed);
  const queries = data.queries.tokens.length;
  let offset = 0;
  for (const { name, heads } of data.layers) {
    const count = heads * queries * data.kept;
    const indices = new Uint16Array(bytes.slice(offset, offset + 2 * count).buffer);
    const values = bytes.slice(offset + 2 * count, offset + 3 * count);
    layers.push({ name, heads, indices, values });
    offset += 3 * count;
  }
}

// Weights -------------------------------------------------------------------------------------------------------

const sides = () => state.words ? [data.queries.words, data.keys.words] : [data.queries.tokens, data.keys.tokens];

function dense(layer, head) { // Float32Array [queries x keys], by subwords
  const [rows, columns] = [data.queries.tokens.length, data.keys.tokens.length];
  const table = new Float32Array(rows * columns);
  const heads = head === "mean" || head === "max" ? [...Array(layer.heads).keys()] : [head];
  for (const index of heads) {
    for (let row = 0; row < rows; row++) {
      const start = (index * rows + row) * data.kept;
      for (let n = start; n < start + data.kept; n++) {
        const weight = (layer.values[n] / 255) ** 2; // stored as a square root, which is finer for small weights
        if (!weight) continue;
        const cell = row * columns + layer.indices[n];
        table[cell] = head === "max" ? Math.max(table[cell], weight) : table[cell] + weight / heads.length;
      }
    }
  }
  return table;
}

function byWords(subwordWeights) { // a row is the mean of its subwords, a column their sum
  const [queryWords, keyWords] = [data.queries.word, data.keys.word];
  const [rows, columns] = [data.queries.words.length, data.keys.words.length];
  const table = new Float32Array(rows * columns);
  const count = new Float32Array(rows);
  queryWords.forEach((word) => { count[word] += 1; });
  for (let q = 0; q < queryWords.length; q++) {
    for (let k = 0; k < keyWords.length; k++) {
      table[queryWords[q] * columns + keyWords[k]] += subwordWeights[q * keyWords.length + k] / count[queryWords[q]];
    }
  }
  return table;
}

function currentWeights() {
  const subwordWeights = dense(layers[state.layer], state.head);
  return state.words ? byWords(subwordWeights) : subwordWeights;
}

function color(weight) {
  const position = Math.min(0.9999, Math.max(0, weight)) * (RAMP.length - 1);
  const [low, high] = [RAMP[Math.floor(position)], RAMP[Math.ceil(position)]];
  return low.map((value, n) => Math.round(value + (high[n] - value) * (position % 1)));
}
const css = (rgb) => `rgb(${rgb.join(",")})`;
const percent = (weight) => `${(100 * weight).toFixed(weight < 0.1 ? 1 : 0)} %`;

// Views ----------------------------------------------------------------------------------------------------------------

let weights = new Float32Array(0);
// Patches share one distribution. Nearly equal weights stay dark: the brightest color is a multiple of an even weight.
const brightest = (values) => GRID ? values.reduce((a, b) => Math.max(a, b), Math.min(1, data.peak / values.length)) : 1;

function drawHeatmap(canvas, values, columns, rows, size) {
  canvas.width = columns * size;
  canvas.height = rows * size;
  const ink = canvas.getContext("2d");
  const max = brightest(values);
  if (size === 1) {
    const image = ink.createImageData(columns, rows);
    for (let n = 0; n < values.length; n++) image.data.set([...color(Math.sqrt(values[n] / max)), 255], 4 * n);
    ink.putImageData(image, 0, 0);
    return;
  }
  ink.fillStyle = css(color(0));
  ink.fillRect(0, 0, canvas.width, canvas.height);
  for (let n = 0; n < values.length; n++) {
    if (values[n] < 0.002 * max) continue;
    ink.fillStyle = css(color(Math.sqrt(values[n] / max)));
    ink.fillRect((n % columns) * size, Math.floor(n / columns) * size, size, size);
  }
}

function svg(name, attributes, parent, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.appendChild(node);
  return node;
}

function label(text, attributes, parent, isMarked) {
  const node = svg("text", { "font-size": 11, fill: isMarked ? "var(--mark)" : "currentColor", ...attributes }, parent, cut(text));
  svg("title", {}, node, text);
  return node;
}
const cut = (text) => (text.length > 14 ? `${text.slice(0, 13)}…` : text) || "·";
const isFound = (token) => state.find !== "" && token.toLowerCase().includes(state.find);

function drawMatrix(parent) {
  const [rows, columns] = sides();
  const fitting = Math.floor(Math.min((container.clientWidth - 170) / columns.length, CELL.max));
  const size = Math.max(fitting, CELL.min);
  const hasLabels = size >= CELL.labeled;
  const [left, top, right] = hasLabels ? [110, 90, 70] : [0, 0, 0]; // margins for labels
  const holder = document.createElement("div");
  holder.style.cssText = `position:relative;width:${left + columns.length * size + right}px;height:${top + rows.length * size}px`;
  const canvas = document.createElement("canvas");
  canvas.style.cssText = `position:absolute;left:${left}px;top:${top}px;cursor:crosshair`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${rows.length} queries in rows, ${columns.length} keys in columns`);
  drawHeatmap(canvas, weights, columns.length, rows.length, size);
  const overlay = svg("svg", { width: left + columns.length * size + right, height: top + rows.length * size, style: "position:absolute;left:0;top:0;pointer-events:none" });
  if (hasLabels) {
    rows.forEach((token, n) => label(token, { x: left - 6, y: top + (n + 0.5) * size + 4, "text-anchor": "end" }, overlay, isFound(token)));
    columns.forEach((token, n) => {
      const x = left + (n + 0.5) * size + 4;
      label(token, { x, y: top - 6, transform: `rotate(-60 ${x} ${top - 6})` }, overlay, isFound(token));
    });
  }
  if (data.gold && hasLabels) drawGoldLinks(overlay, { left, top, size });
  const cross = [0, 1].map(() => svg("line", { stroke: "var(--mark)", "stroke-width": 1, visibility: "hidden" }, overlay));
  canvas.addEventListener("mousemove", (event) => {
    const column = Math.min(columns.length - 1, Math.floor(event.offsetX / size));
    const row = Math.min(rows.length - 1, Math.floor(event.offsetY / size));
    const [x, y] = [left + (column + 0.5) * size, top + (row + 0.5) * size];
    const ends = [[left, y, left + columns.length * size, y], [x, top, x, top + rows.length * size]];
    cross.forEach((line, n) => ["x1", "y1", "x2", "y2"].forEach((name, i) => line.setAttribute(name, ends[n][i])));
    cross.forEach((line) => line.setAttribute("visibility", "visible"));
    state.row = row;
    state.key = column;
    options.onSelect?.(selection());
    const weight = percent(weights[row * columns.length + column]);
    setStatus(GRID ? `${rows[row]}, ${columns[column]}: ${weight}` : `${quoted(rows[row])} attends to ${quoted(columns[column])}: ${weight}`);
  });
  holder.append(canvas, overlay);
  parent.append(holder);
  if (!data.image) return;
  const below = new Image();
  below.alt = "The image, as the model reads it";
  below.style.cssText = `width:${columns.length * size}px;height:${rows.length * size}px;margin-left:${left}px;image-rendering:pixelated`;
  below.src = `data:image/png;base64,${data.image}`;
  parent.append(below);
}

function drawLines(parent) {
  const [rows, columns] = sides();
  const [step, width] = [20, 360];
  const height = Math.max(rows.length, columns.length) * step + 20;
  const board = svg("svg", { width: 2 * 120 + width, height, role: "img", "aria-label": "Lines from queries to keys" });
  const threads = svg("g", {}, board);
  const draw = (only) => {
    threads.replaceChildren();
    for (let q = 0; q < rows.length; q++) {
      if (only !== null && q !== only) continue;
      for (let k = 0; k < columns.length; k++) {
        const weight = weights[q * columns.length + k];
        if (weight < (only === null ? 0.05 : 0.005)) continue;
        svg("line", { x1: 124, y1: q * step + 16, x2: 116 + width, y2: k * step + 16, stroke: "#21918c", "stroke-width": 1 + 3 * weight, opacity: 0.1 + 0.9 * weight }, threads);
      }
    }
  };
  rows.forEach((token, q) => {
    const node = label(token, { x: 116, y: q * step + 20, "text-anchor": "end", style: "cursor:default" }, board, isFound(token));
    node.addEventListener("mouseenter", () => { state.row = q; draw(q); describeRow(); options.onSelect?.(selection()); });
    node.addEventListener("click", () => options.onQueryClick?.(q, node));
    node.addEventListener("mouseleave", () => draw(null));
  });
  columns.forEach((token, k) => label(token, { x: 124 + width, y: k * step + 20 }, board, isFound(token)));
  draw(null);
  parent.append(board);
}

function drawAllHeads(parent) {
  const grid = document.createElement("div");
  grid.className = "grid";
  const maxHeads = Math.max(...layers.map((layer) => layer.heads));
  grid.style.gridTemplateColumns = `auto repeat(${maxHeads}, auto)`;
  const [rows, columns] = [data.queries.tokens.length, data.keys.tokens.length];
  const side = Math.max(36, Math.min(96, Math.floor((container.clientWidth - 160) / maxHeads) - 10));
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      drawThumbnail(target, layers[target.dataset.layer], Number(target.dataset.head), rows, columns);
    }
  });
  layers.forEach((layer, index) => {
    const name = document.createElement("span");
    name.textContent = layer.name;
    grid.append(name);
    for (let head = 0; head < maxHeads; head++) {
      if (head >= layer.heads) { grid.append(document.createElement("span")); continue; }
      const button = document.createElement("button");
      button.setAttribute("aria-label", `${layer.name}, head ${head + 1}`);
      const canvas = document.createElement("canvas");
      canvas.dataset.layer = index;
      canvas.dataset.head = head;
      canvas.style.cssText = `width:${side}px;height:${Math.max(12, Math.min(96, side * rows / columns))}px`;
      button.append(canvas);
      button.addEventListener("click", () => { Object.assign(state, { view: "matrix", layer: index, head }); show(); });
      grid.append(button);
      observer.observe(canvas);
    }
  });
  parent.append(grid);
}

function drawThumbnail(canvas, layer, head, rows, columns) { // at most 64 cells a side; each is the maximum of its weights
  const [height, width] = [Math.min(rows, 64), Math.min(columns, 64)];
  const table = new Float32Array(height * width);
  for (let row = 0; row < rows; row++) {
    const start = (head * rows + row) * data.kept;
    for (let n = start; n < start + data.kept; n++) {
      const cell = Math.floor(row * height / rows) * width + Math.floor(layer.indices[n] * width / columns);
      table[cell] = Math.max(table[cell], (layer.values[n] / 255) ** 2);
    }
  }
  drawHeatmap(canvas, table, width, height, 1);
}

// Descriptions --------------------------------------------------------------------------------------------------

const quoted = (token) => `“${token}”`;
const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);
function setStatus(text) { $("status").textContent = text; }

function describeRow() {
  const [rows, columns] = sides();
  const row = Math.min(state.row, rows.length - 1);
  if (GRID) {
    const cell = weights.reduce((best, weight, n) => weight > weights[best] ? n : best, 0);
    const patch = `${rows[Math.floor(cell / columns.length)]}, ${columns[cell % columns.length]}`;
    setStatus(`${capitalized(data.reader) || quoted(layers[state.layer].name)} attends most to ${patch}: ${percent(weights[cell])}`);
    return;
  }
  const order = [...columns.keys()].sort((a, b) => weights[row * columns.length + b] - weights[row * columns.length + a]);
  const best = order.slice(0, 5).filter((k) => weights[row * columns.length + k] > 0);
  setStatus(`${quoted(rows[row])} attends to ${best.map((k) => `${quoted(columns[k])} ${percent(weights[row * columns.length + k])}`).join(", ") || "nothing"}`);
}

function showStatistics() {
  const [rows, columns] = sides();
  let [bits, distance, mass] = [0, 0, 0];
  for (let q = 0; q < rows.length; q++) {
    for (let k = 0; k < columns.length; k++) {
      const weight = weights[q * columns.length + k];
      if (weight > 0) bits -= weight * Math.log2(weight);
      distance += weight * Math.abs(q - k);
      mass += weight;
    }
  }
  if (GRID) {
    const entropy = [...weights].reduce((sum, weight) => weight > 0 ? sum - weight / mass * Math.log2(weight / mass) : sum, 0);
    const rest = data.reader ? `, ${percent(Math.max(0, 1 - mass))} on ${data.reader} itself` : "";
    const even = `equal weights would be ${percent(1 / weights.length)}`;
    $("statistics").textContent = `entropy ${entropy.toFixed(2)} bits over the patches${rest}; bright is ${percent(brightest(weights))}, ${even}`;
    return;
  }
  const note = data.dropped > 0.0005 ? `; each row has its ${data.kept} greatest weights, without ${percent(data.dropped)} of the mass` : "";
  $("statistics").textContent = `entropy ${(bits / rows.length).toFixed(2)} bits per row, distance ${(distance / Math.max(mass, 1e-9)).toFixed(1)}; color: square root of the weight, dark 0, bright 1${note}`;
}

function showOpening() { // why the page opens on this head
  const { layer, head, bits } = data.clearest;
  const isOpen = HAS_CHOICE && state.layer === layer && state.head === head;
  const name = layers[layer].heads > 1 ? `${layers[layer].name}, head ${head + 1}` : layers[layer].name;
  $("opening").textContent = isOpen ? `The page opens on ${name}, the sharpest of this map: its weights differ most from an even pattern (${bits.toFixed(2)} bits).` : "";
}

function showTable() {
  $("table").replaceChildren();
  if (!$("table-of").open) return;
  const [rows, columns] = sides();
  if (rows.length * columns.length > 20000) { $("table").textContent = "Too large for a table; save the map as .csv instead."; return; }
  const node = document.createElement("table");
  const cell = (row, name, text) => { const child = document.createElement(name); child.textContent = text; row.append(child); };
  const head = node.createTHead().insertRow();
  cell(head, "td", "");
  columns.forEach((token) => cell(head, "th", token));
  rows.forEach((token, q) => {
    const row = node.insertRow();
    cell(row, "th", token);
    columns.forEach((_, k) => cell(row, "td", weights[q * columns.length + k].toFixed(2)));
  });
  $("table").append(node);
}

// Controls ------------------------------------------------------------------------------------------------------

function setOptions(select, names, selected) {
  select.replaceChildren(...names.map(([value, text]) => new Option(text, value, false, String(value) === String(selected))));
}

function show() {
  const layer = layers[state.layer];
  if (typeof state.head === "number" && state.head >= layer.heads) state.head = 0;
  setOptions($("layer"), layers.map(({ name }, n) => [n, name]), state.layer);
  setOptions($("head"), [["mean", "mean"], ["max", "max"], ...Array.from({ length: layer.heads }, (_, n) => [n, n + 1])], state.head);
  $("words").checked = state.words;
  container.querySelectorAll("[data-view]").forEach((tab) => tab.setAttribute("aria-selected", tab.dataset.view === state.view));
  weights = currentWeights();
  $("view").replaceChildren();
  VIEWS[state.view]($("view"));
  showStatistics();
  showOpening();
  showGoldScores();
  describeRow();
  showTable();
}

function move(by, what) {
  const layer = layers[state.layer];
  if (what === "layer") state.layer = (state.layer + by + layers.length) % layers.length;
  else {
    const choices = ["mean", "max", ...Array(layer.heads).keys()];
    state.head = choices[(choices.indexOf(state.head) + by + choices.length) % choices.length];
  }
  show();
}

function toggleTheme() {
  const theme = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme === "dark" ? "light" : "dark";
}

const VIEWS = { matrix: drawMatrix, lines: drawLines, model: drawAllHeads, steps: drawSteps, tree: drawTree };
const KEYS = {
  ArrowLeft: () => move(-1, "head"), ArrowRight: () => move(1, "head"),
  ArrowUp: () => move(-1, "layer"), ArrowDown: () => move(1, "layer"),
  1: () => setView("matrix"), 2: () => { if (!GRID) setView("lines"); }, 3: () => setView("model"),
  4: () => { if (data.choices.length && data.kind !== "grid") setView("steps"); }, 5: () => { if (data.tree.length) setView("tree"); },
  j: () => moveRow(1), k: () => moveRow(-1), d: toggleTheme,
  w: () => { if (!$("words").disabled) { state.words = !state.words; show(); } },
  "/": () => $("find").focus(),
};
function setView(view) { state.view = view; show(); }
function moveRow(by) {
  const count = state.view === "steps" ? data.choices.length : sides()[0].length;
  state.row = (state.row + by + count) % count;
  if (state.view === "steps") show(); else describeRow();
}

function saveImage(kind) { // the current matrix
  const [rows, columns] = sides();
  const board = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width: 120 + columns.length * 18, height: 100 + rows.length * 18, "font-family": "sans-serif" });
  svg("rect", { width: "100%", height: "100%", fill: "#fff" }, board);
  rows.forEach((token, q) => {
    svg("text", { x: 112, y: 100 + q * 18 + 13, "text-anchor": "end", "font-size": 11 }, board, cut(token));
    columns.forEach((_, k) => svg("rect", { x: 118 + k * 18, y: 100 + q * 18, width: 18, height: 18, fill: css(color(Math.sqrt(weights[q * columns.length + k]))) }, board));
  });
  columns.forEach((token, k) => svg("text", { x: 130 + k * 18, y: 94, "font-size": 11, transform: `rotate(-60 ${130 + k * 18} 94)` }, board, cut(token)));
  const text = new XMLSerializer().serializeToString(board);
  if (kind === "svg") { download(new Blob([text], { type: "image/svg+xml" }), "attention.svg"); return; }
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(blob, "attention.png"));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

container.querySelectorAll("[data-view]").forEach((tab) => tab.addEventListener("click", () => setView(tab.dataset.view)));
$("layer").addEventListener("change", (event) => { state.layer = Number(event.target.value); show(); });
$("head").addEventListener("change", ({ target }) => { state.head = isNaN(target.value) ? target.value : Number(target.value); show(); });
$("words").addEventListener("change", (event) => { state.words = event.target.checked; show(); });
$("find").addEventListener("input", (event) => { state.find = event.target.value.toLowerCase(); show(); });
$("theme").addEventListener("click", toggleTheme);
$("png").addEventListener("click", () => saveImage("png"));
$("svg").addEventListener("click", () => saveImage("svg"));
$("table-of").addEventListener("toggle", showTable);
const onKey = (event) => {
  if (event.target.matches?.("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key in KEYS) { event.preventDefault(); KEYS[event.key](); options.onSelect?.(selection()); }
};
const keyTarget = options.keyTarget ?? container;
keyTarget.addEventListener("keydown", onKey);
const selection = () => ({ layer: state.layer, head: state.head, query: state.row, key: state.key, words: state.words });
for (const action of options.actions ?? []) {
  const button = element("button", { type: "button", textContent: action.label }, container.querySelector(".tools"));
  button.addEventListener("click", () => action.run(selection()));
}
if (options.compact) for (const part of ["png", "svg", "theme"]) $(part).hidden = true;
if (GRID) $("tab-lines").hidden = true;
$("tab-steps").hidden = !data.choices.length || data.kind === "grid";
$("tab-tree").hidden = !data.tree.length;
if (data.queries.words.length === data.queries.tokens.length && data.keys.words.length === data.keys.tokens.length) {
  $("words").disabled = true; // tokens are words
  $("words-label").hidden = true;
}
const ready = readLayers().then(show).then(() => { container.dataset.ready = "yes"; });
return {
  ready,
  state: () => ({ ...selection(), view: state.view }),
  select(query) { state.row = query; if (state.view === "steps") show(); else describeRow(); },
  destroy() { keyTarget.removeEventListener("keydown", onKey); delete container.dataset.ready; },
};
}
