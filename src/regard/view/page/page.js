// One map of attention: layers of heads, each row sparse. Nothing is fetched; text is only ever set as text.

const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]]; // viridis: order survives grey
const CELL = { most: 28, least: 3, labelled: 11 };
const GRID = data.kind === "grid"; // rows and columns are those of an image, and what looks is its class token
const state = { view: "matrix", layer: 0, head: "mean", words: false, row: 0, find: "" };
const layers = []; // {name, heads, places: Uint16Array, values: Uint8Array} as they come out of the page

async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function opened() {
  const bytes = await unpacked(data.packed);
  const queries = data.queries.tokens.length;
  let at = 0;
  for (const { name, heads } of data.layers) {
    const count = heads * queries * data.kept;
    const places = new Uint16Array(bytes.slice(at, at + 2 * count).buffer);
    const values = bytes.slice(at + 2 * count, at + 3 * count);
    layers.push({ name, heads, places, values });
    at += 3 * count;
  }
}

// What is shown ------------------------------------------------------------------------------------------------------

const sides = () => state.words ? [data.queries.words, data.keys.words] : [data.queries.tokens, data.keys.tokens];

function dense(layer, head) { // Float32Array [queries x keys], by pieces
  const [rows, columns] = [data.queries.tokens.length, data.keys.tokens.length];
  const found = new Float32Array(rows * columns);
  const heads = head === "mean" || head === "max" ? [...Array(layer.heads).keys()] : [head];
  for (const one of heads) {
    for (let row = 0; row < rows; row++) {
      const start = (one * rows + row) * data.kept;
      for (let n = start; n < start + data.kept; n++) {
        const weight = (layer.values[n] / 255) ** 2; // finer for small weights
        if (!weight) continue;
        const place = row * columns + layer.places[n];
        found[place] = head === "max" ? Math.max(found[place], weight) : found[place] + weight / heads.length;
      }
    }
  }
  return found;
}

function byWords(pieces) { // a word's row is the mean of its pieces', its column their sum
  const [of, to] = [data.queries.word, data.keys.word];
  const [rows, columns] = [data.queries.words.length, data.keys.words.length];
  const found = new Float32Array(rows * columns);
  const count = new Float32Array(rows);
  of.forEach((word) => { count[word] += 1; });
  for (let q = 0; q < of.length; q++) {
    for (let k = 0; k < to.length; k++) {
      found[of[q] * columns + to[k]] += pieces[q * to.length + k] / count[of[q]];
    }
  }
  return found;
}

function current() {
  const pieces = dense(layers[state.layer], state.head);
  return state.words ? byWords(pieces) : pieces;
}

function colour(weight) {
  const at = Math.min(0.9999, Math.max(0, weight)) * (RAMP.length - 1);
  const [low, high] = [RAMP[Math.floor(at)], RAMP[Math.ceil(at)]];
  return low.map((value, n) => Math.round(value + (high[n] - value) * (at % 1)));
}
const css = (rgb) => `rgb(${rgb.join(",")})`;
const percent = (weight) => `${(100 * weight).toFixed(weight < 0.1 ? 1 : 0)} %`;

// Views ----------------------------------------------------------------------------------------------------------------

let weights = new Float32Array(0);
const greatest = (values) => GRID ? values.reduce((a, b) => Math.max(a, b), 1e-9) : 1; // many patches share one look

function drawn(canvas, values, columns, rows, size) {
  canvas.width = columns * size;
  canvas.height = rows * size;
  const ink = canvas.getContext("2d");
  const most = greatest(values);
  if (size === 1) {
    const image = ink.createImageData(columns, rows);
    for (let n = 0; n < values.length; n++) image.data.set([...colour(Math.sqrt(values[n] / most)), 255], 4 * n);
    ink.putImageData(image, 0, 0);
    return;
  }
  ink.fillStyle = css(colour(0));
  ink.fillRect(0, 0, canvas.width, canvas.height);
  for (let n = 0; n < values.length; n++) {
    if (values[n] < 0.002 * most) continue;
    ink.fillStyle = css(colour(Math.sqrt(values[n] / most)));
    ink.fillRect((n % columns) * size, Math.floor(n / columns) * size, size, size);
  }
}

function svg(name, attributes, parent, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}

function label(text, attributes, parent, found) {
  const made = svg("text", { "font-size": 11, fill: found ? "var(--mark)" : "currentColor", ...attributes }, parent, cut(text));
  svg("title", {}, made, text);
  return made;
}
const cut = (text) => (text.length > 14 ? `${text.slice(0, 13)}…` : text) || "·";
const isFound = (token) => state.find !== "" && token.toLowerCase().includes(state.find);

function matrix(into) {
  const [rows, columns] = sides();
  const room = Math.floor(Math.min((innerWidth - 170) / columns.length, CELL.most));
  const size = Math.max(room, CELL.least);
  const named = size >= CELL.labelled;
  const [left, top, right] = named ? [110, 90, 70] : [0, 0, 0]; // room for labels
  const holder = document.createElement("div");
  holder.style.cssText = `position:relative;width:${left + columns.length * size + right}px;height:${top + rows.length * size}px`;
  const canvas = document.createElement("canvas");
  canvas.style.cssText = `position:absolute;left:${left}px;top:${top}px;cursor:crosshair`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${rows.length} rows that look, ${columns.length} columns that are looked at`);
  drawn(canvas, weights, columns.length, rows.length, size);
  const over = svg("svg", { width: left + columns.length * size + right, height: top + rows.length * size, style: "position:absolute;left:0;top:0;pointer-events:none" });
  if (named) {
    rows.forEach((token, n) => label(token, { x: left - 6, y: top + (n + 0.5) * size + 4, "text-anchor": "end" }, over, isFound(token)));
    columns.forEach((token, n) => {
      const x = left + (n + 0.5) * size + 4;
      label(token, { x, y: top - 6, transform: `rotate(-60 ${x} ${top - 6})` }, over, isFound(token));
    });
  }
  if (data.gold && named) goldMarks(over, { left, top, size });
  const cross = [0, 1].map(() => svg("line", { stroke: "var(--mark)", "stroke-width": 1, visibility: "hidden" }, over));
  canvas.addEventListener("mousemove", (event) => {
    const column = Math.min(columns.length - 1, Math.floor(event.offsetX / size));
    const row = Math.min(rows.length - 1, Math.floor(event.offsetY / size));
    const [x, y] = [left + (column + 0.5) * size, top + (row + 0.5) * size];
    const ends = [[left, y, left + columns.length * size, y], [x, top, x, top + rows.length * size]];
    cross.forEach((line, n) => ["x1", "y1", "x2", "y2"].forEach((name, i) => line.setAttribute(name, ends[n][i])));
    cross.forEach((line) => line.setAttribute("visibility", "visible"));
    state.row = row;
    const weight = percent(weights[row * columns.length + column]);
    tell(GRID ? `${rows[row]}, ${columns[column]}: ${weight}` : `${quoted(rows[row])} looks at ${quoted(columns[column])}: ${weight}`);
  });
  holder.append(canvas, over);
  into.append(holder);
  if (!data.image) return;
  const below = new Image();
  below.alt = "The image, as the model sees it";
  below.style.cssText = `width:${columns.length * size}px;height:${rows.length * size}px;margin-left:${left}px;image-rendering:pixelated`;
  below.src = `data:image/png;base64,${data.image}`;
  into.append(below);
}

function lines(into) {
  const [rows, columns] = sides();
  const [step, width] = [20, 360];
  const height = Math.max(rows.length, columns.length) * step + 20;
  const board = svg("svg", { width: 2 * 120 + width, height, role: "img", "aria-label": "Lines from tokens that look to those looked at" });
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
    const made = label(token, { x: 116, y: q * step + 20, "text-anchor": "end", style: "cursor:default" }, board, isFound(token));
    made.addEventListener("mouseenter", () => { state.row = q; draw(q); tellRow(); });
    made.addEventListener("mouseleave", () => draw(null));
  });
  columns.forEach((token, k) => label(token, { x: 124 + width, y: k * step + 20 }, board, isFound(token)));
  draw(null);
  into.append(board);
}

function model(into) {
  const grid = document.createElement("div");
  grid.className = "grid";
  const most = Math.max(...layers.map((layer) => layer.heads));
  grid.style.gridTemplateColumns = `auto repeat(${most}, auto)`;
  const [rows, columns] = [data.queries.tokens.length, data.keys.tokens.length];
  const side = Math.max(36, Math.min(96, Math.floor((innerWidth - 160) / most) - 10));
  const waiting = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) {
      if (!isIntersecting) continue;
      waiting.unobserve(target);
      thumbnail(target, layers[target.dataset.layer], Number(target.dataset.head), rows, columns);
    }
  });
  layers.forEach((layer, at) => {
    const name = document.createElement("span");
    name.textContent = layer.name;
    grid.append(name);
    for (let head = 0; head < most; head++) {
      if (head >= layer.heads) { grid.append(document.createElement("span")); continue; }
      const button = document.createElement("button");
      button.setAttribute("aria-label", `${layer.name}, head ${head + 1}`);
      const canvas = document.createElement("canvas");
      canvas.dataset.layer = at;
      canvas.dataset.head = head;
      canvas.style.cssText = `width:${side}px;height:${Math.max(12, Math.min(96, side * rows / columns))}px`;
      button.append(canvas);
      button.addEventListener("click", () => { Object.assign(state, { view: "matrix", layer: at, head }); show(); });
      grid.append(button);
      waiting.observe(canvas);
    }
  });
  into.append(grid);
}

function thumbnail(canvas, layer, head, rows, columns) { // at most 64 cells a side: the greatest of those below one
  const [tall, wide] = [Math.min(rows, 64), Math.min(columns, 64)];
  const found = new Float32Array(tall * wide);
  for (let row = 0; row < rows; row++) {
    const start = (head * rows + row) * data.kept;
    for (let n = start; n < start + data.kept; n++) {
      const place = Math.floor(row * tall / rows) * wide + Math.floor(layer.places[n] * wide / columns);
      found[place] = Math.max(found[place], (layer.values[n] / 255) ** 2);
    }
  }
  drawn(canvas, found, wide, tall, 1);
}

// What is told -------------------------------------------------------------------------------------------------------

const quoted = (token) => `“${token}”`;
function tell(text) { $("told").textContent = text; }

function tellRow() {
  const [rows, columns] = sides();
  const row = Math.min(state.row, rows.length - 1);
  if (GRID) {
    const place = weights.reduce((best, weight, n) => weight > weights[best] ? n : best, 0);
    const patch = `${rows[Math.floor(place / columns.length)]}, ${columns[place % columns.length]}`;
    tell(`What the class token looks at most: ${patch}, ${percent(weights[place])}`);
    return;
  }
  const order = [...columns.keys()].sort((a, b) => weights[row * columns.length + b] - weights[row * columns.length + a]);
  const best = order.slice(0, 5).filter((k) => weights[row * columns.length + k] > 0);
  tell(`${quoted(rows[row])} looks at ${best.map((k) => `${quoted(columns[k])} ${percent(weights[row * columns.length + k])}`).join(", ") || "nothing"}`);
}

function facts() {
  const [rows, columns] = sides();
  let [bits, far, mass] = [0, 0, 0];
  for (let q = 0; q < rows.length; q++) {
    for (let k = 0; k < columns.length; k++) {
      const weight = weights[q * columns.length + k];
      if (weight > 0) bits -= weight * Math.log2(weight);
      far += weight * Math.abs(q - k);
      mass += weight;
    }
  }
  if (GRID) {
    const spread = [...weights].reduce((sum, weight) => weight > 0 ? sum - weight / mass * Math.log2(weight / mass) : sum, 0);
    $("facts").textContent = `entropy ${spread.toFixed(2)} bits over the patches, ${percent(1 - mass)} on the class token itself; bright is ${percent(greatest(weights))}`;
    return;
  }
  const lost = data.dropped > 0.0005 ? `; of each row the ${data.kept} greatest weights are kept, ${percent(data.dropped)} of the mass is not shown` : "";
  $("facts").textContent = `entropy ${(bits / rows.length).toFixed(2)} bits a row, distance ${(far / Math.max(mass, 1e-9)).toFixed(1)}; colours by the root of the weight, dark 0, bright 1${lost}`;
}

function table() {
  $("table").replaceChildren();
  if (!$("table-of").open) return;
  const [rows, columns] = sides();
  if (rows.length * columns.length > 20000) { $("table").textContent = "Too large for a table here: the file of the map has all."; return; }
  const made = document.createElement("table");
  const cell = (row, name, text) => { const one = document.createElement(name); one.textContent = text; row.append(one); };
  const head = made.createTHead().insertRow();
  cell(head, "td", "");
  columns.forEach((token) => cell(head, "th", token));
  rows.forEach((token, q) => {
    const row = made.insertRow();
    cell(row, "th", token);
    columns.forEach((_, k) => cell(row, "td", weights[q * columns.length + k].toFixed(2)));
  });
  $("table").append(made);
}

// Choices ------------------------------------------------------------------------------------------------------------

function options(select, names, chosen) {
  select.replaceChildren(...names.map(([value, text]) => new Option(text, value, false, String(value) === String(chosen))));
}

function show() {
  const layer = layers[state.layer];
  if (typeof state.head === "number" && state.head >= layer.heads) state.head = 0;
  options($("layer"), layers.map((one, n) => [n, one.name]), state.layer);
  options($("head"), [["mean", "mean"], ["max", "max"], ...Array.from({ length: layer.heads }, (_, n) => [n, n + 1])], state.head);
  $("words").checked = state.words;
  document.querySelectorAll("[data-view]").forEach((tab) => tab.setAttribute("aria-selected", tab.dataset.view === state.view));
  weights = current();
  $("view").replaceChildren();
  ({ matrix, lines, model, steps, tree })[state.view]($("view"));
  facts();
  goldTold();
  tellRow();
  table();
}

function moved(by, what) {
  const layer = layers[state.layer];
  if (what === "layer") state.layer = (state.layer + by + layers.length) % layers.length;
  else {
    const all = ["mean", "max", ...Array(layer.heads).keys()];
    state.head = all[(all.indexOf(state.head) + by + all.length) % all.length];
  }
  show();
}

function dark() {
  const now = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
}

const KEYS = {
  ArrowLeft: () => moved(-1, "head"), ArrowRight: () => moved(1, "head"),
  ArrowUp: () => moved(-1, "layer"), ArrowDown: () => moved(1, "layer"),
  1: () => viewed("matrix"), 2: () => { if (!GRID) viewed("lines"); }, 3: () => viewed("model"),
  4: () => { if (data.choices.length) viewed("steps"); }, 5: () => { if (data.tree.length) viewed("tree"); },
  j: () => rowed(1), k: () => rowed(-1), d: dark,
  w: () => { if (!$("words").disabled) { state.words = !state.words; show(); } },
  "/": () => $("find").focus(),
};
function viewed(view) { state.view = view; show(); }
function rowed(by) {
  const count = state.view === "steps" ? data.choices.length : sides()[0].length;
  state.row = (state.row + by + count) % count;
  if (state.view === "steps") show(); else tellRow();
}

function picture(kind) { // what is seen, as a file
  const [rows, columns] = sides();
  const board = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width: 120 + columns.length * 18, height: 100 + rows.length * 18, "font-family": "sans-serif" });
  svg("rect", { width: "100%", height: "100%", fill: "#fff" }, board);
  rows.forEach((token, q) => {
    svg("text", { x: 112, y: 100 + q * 18 + 13, "text-anchor": "end", "font-size": 11 }, board, cut(token));
    columns.forEach((_, k) => svg("rect", { x: 118 + k * 18, y: 100 + q * 18, width: 18, height: 18, fill: css(colour(Math.sqrt(weights[q * columns.length + k]))) }, board));
  });
  columns.forEach((token, k) => svg("text", { x: 130 + k * 18, y: 94, "font-size": 11, transform: `rotate(-60 ${130 + k * 18} 94)` }, board, cut(token)));
  const text = new XMLSerializer().serializeToString(board);
  if (kind === "svg") { saved(new Blob([text], { type: "image/svg+xml" }), "attention.svg"); return; }
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => saved(blob, "attention.png"));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

function saved(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

document.querySelectorAll("[data-view]").forEach((tab) => tab.addEventListener("click", () => viewed(tab.dataset.view)));
$("layer").addEventListener("change", (event) => { state.layer = Number(event.target.value); show(); });
$("head").addEventListener("change", ({ target }) => { state.head = isNaN(target.value) ? target.value : Number(target.value); show(); });
$("words").addEventListener("change", (event) => { state.words = event.target.checked; show(); });
$("find").addEventListener("input", (event) => { state.find = event.target.value.toLowerCase(); show(); });
$("theme").addEventListener("click", dark);
$("png").addEventListener("click", () => picture("png"));
$("svg").addEventListener("click", () => picture("svg"));
$("table-of").addEventListener("toggle", table);
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key in KEYS) { event.preventDefault(); KEYS[event.key](); }
});
if (GRID) $("tab-lines").hidden = true;
$("tab-steps").hidden = !data.choices.length;
$("tab-tree").hidden = !data.tree.length;
if (data.queries.words.length === data.queries.tokens.length && data.keys.words.length === data.keys.tokens.length) {
  $("words").disabled = true; // tokens are words
  $("words-label").hidden = true;
}
opened().then(show).then(() => { document.body.dataset.ready = "yes"; });
