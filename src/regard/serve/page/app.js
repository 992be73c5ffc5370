// The page of the server: a form made of the fields of a run, its answer, and its attention.
"use strict";

const $ = (id) => document.getElementById(id);
const state = { runs: [], run: null, turns: [], image: null, map: null, input: null, stop: null };

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

async function request(path, body, signal) {
  const options = body === undefined ? { signal } : {
    method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body), signal,
  };
  const response = await fetch(path, options);
  if (!response.ok) {
    const answer = await response.json().catch(() => ({}));
    throw new Error(answer.error?.message ?? `status ${response.status}`);
  }
  return response;
}

function showError(error) {
  $("error").hidden = !error;
  $("error").textContent = error && error.name !== "AbortError" ? error.message : "";
}

// --- the form

function showRun(name) {
  const run = state.runs.find((one) => one.name === name) ?? state.runs[0];
  Object.assign(state, { run, turns: [], image: null, map: null });
  $("run").value = run.name;
  const size = run.parameters.toLocaleString("en");
  $("about").textContent = `${run.model}, ${size} parameters, task ${run.task}`;
  $("fields").replaceChildren(...run.fields.map(buildField));
  $("attention").hidden = true;
  $("raw").hidden = true;
  $("output").replaceChildren(element("p", { class: "quiet" }, "Give an input, and press Predict."));
  showError(null);
  fillHistory();
  fillExamples();
}

function buildField(field) {
  const id = `field-${field.name}`;
  const text = field.is_required ? field.label : `${field.label} (optional)`;
  const label = element("label", { for: id }, text);
  if (field.kind === "image") return buildImageField(id, label);
  if (field.kind === "list") {
    const input = element("input", { id, type: "text", autocomplete: "off" });
    const restart = element("button", { type: "button", onclick: () => showRun(state.run.name) },
      "New conversation");
    return element("div", {}, element("div", { id: "turns" }), label, input, restart);
  }
  const tag = field.kind === "lines" ? "textarea" : "input";
  const control = element(tag, { id, type: tag === "input" ? "text" : null, placeholder: field.example });
  return element("div", {}, label, control);
}

function buildImageField(id, label) {
  const input = element("input", { id, type: "file", accept: "image/*",
    onchange: () => readImage(input.files[0]) });
  const box = element("div", { class: "drop", ondragover: (event) => event.preventDefault(),
    ondrop: (event) => { event.preventDefault(); readImage(event.dataTransfer.files[0]); } },
    label, input, element("img", { id: "preview", alt: "", hidden: true }));
  return box;
}

function readImage(file) {
  if (!file) return;
  const reader = new FileReader();
  reader.onload = () => {
    state.image = reader.result;
    $("preview").src = reader.result;
    $("preview").hidden = false;
  };
  reader.readAsDataURL(file);
}

function readInput() {
  const values = {};
  for (const field of state.run.fields) {
    if (field.kind === "image") { values[field.name] = state.image ?? ""; continue; }
    const text = $(`field-${field.name}`).value;
    values[field.name] = field.kind === "list" ? [...state.turns, text] : text;
  }
  return values;
}

function writeInput(values) {
  for (const field of state.run.fields) {
    const value = values[field.name];
    if (field.kind === "image" || value === undefined) continue;
    if (field.kind === "list") {
      state.turns = value.slice(0, -1);
      $(`field-${field.name}`).value = value.at(-1) ?? "";
      showTurns();
    } else $(`field-${field.name}`).value = value;
  }
}

function showTurns() {
  const last = state.turns.length % 2;
  $("turns").replaceChildren(...state.turns.map((text, index) =>
    element("p", { class: `bubble${(index + last) % 2 ? " model" : ""}` }, text)));
}

async function fillExamples() {
  const run = state.run;
  $("examples").replaceChildren(element("option", { value: "" }, "none"));
  try {
    const examples = await (await request(`/api/runs/${encodeURIComponent(run.name)}/examples`)).json();
    if (run !== state.run) return;
    $("examples").append(...examples.map((example) => {
      const text = Object.values(example).find((value) => typeof value === "string");
      return element("option", { value: example.index }, (text ?? `example ${example.index + 1}`).slice(0, 60));
    }));
  } catch { /* a run without its data has no examples */ }
}

// --- history and link

function inputHistory(update) {
  try {
    const all = JSON.parse(localStorage.getItem("regard-history") ?? "{}");
    const own = all[state.run.name] ?? [];
    if (update) {
      all[state.run.name] = [update, ...own.filter((one) => JSON.stringify(one) !== JSON.stringify(update))].slice(0, 20);
      localStorage.setItem("regard-history", JSON.stringify(all));
    }
    return all[state.run.name] ?? [];
  } catch { return []; }
}

function fillHistory() {
  $("history").replaceChildren(element("option", { value: "" }, "none"), ...inputHistory().map((values, index) =>
    element("option", { value: index }, [Object.values(values).flat().at(-1)].join("").slice(0, 60))));
}

function remember(values) {
  if (state.run.fields.some((field) => field.kind === "image")) return;
  inputHistory(values);
  fillHistory();
  const link = new URLSearchParams({ run: state.run.name, input: JSON.stringify(values) });
  window.history.replaceState(null, "", `#${link}`);
}

// --- prediction

async function predict(example) {
  const run = state.run, isExample = example !== undefined;
  const values = isExample ? null : readInput();
  const missing = isExample ? undefined : run.fields.find((field) =>
    field.is_required && ![values[field.name]].flat().at(-1));
  if (missing) { showError(new Error(`${missing.label}: the input is missing`)); return; }
  state.input = isExample ? { example } : { input: values };
  state.stop = new AbortController();
  $("stop").hidden = false;
  showError(null);
  try {
    const body = isExample ? { examples: [example] } : { inputs: [values] };
    const prediction = await streamPrediction(run, body, state.stop.signal);
    showPrediction(prediction, values);
    if (!isExample) remember(values);
    await showAttention(run);
  } catch (error) { showError(error); } finally { $("stop").hidden = true; }
}

async function streamPrediction(run, body, signal) {
  const path = `/api/runs/${encodeURIComponent(run.name)}/predict`;
  const response = await request(path, { ...body, stream: true }, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "", answer = null;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    buffer += value;
    const events = buffer.split("\n\n");
    buffer = events.pop();
    for (const event of events) {
      const kind = /^event: (.*)$/m.exec(event)?.[1];
      const data = JSON.parse(/^data: (.*)$/m.exec(event)[1]);
      if (kind === "error") throw new Error(data.error.message);
      if (kind === "prediction") answer = data;
      else $("output").replaceChildren(element("p", { class: "answer" }, data.text));
    }
  }
  if (answer === null) throw new Error("the server has closed the connection");
  return answer;
}

function showPrediction(prediction, values) {
  $("raw").hidden = false;
  $("json").textContent = JSON.stringify(prediction, null, 2);
  const list = state.run.fields.find((field) => field.kind === "list");
  if (list && values) {
    state.turns = [...values[list.name], prediction.text];
    $(`field-${list.name}`).value = "";
    showTurns();
  }
  $("output").replaceChildren(...predictionNodes(prediction, values));
}

function predictionNodes(prediction, values) {
  if (prediction.probabilities && prediction.label !== undefined) return classBars(prediction);
  if (Array.isArray(prediction.spans)) return [highlightSpans(prediction, values)];
  const nodes = [element("p", { class: "answer" }, prediction.text || "(empty)")];
  const outputs = prediction.outputs ?? prediction.captions ?? [];
  if (outputs.length > 1) {
    nodes.push(element("ol", {}, ...outputs.map((output) => element("li", {}, output.text))));
  }
  const context = values?.context;
  if (context && prediction.text && context.includes(prediction.text)) {
    const start = prediction.start ?? context.indexOf(prediction.text);
    nodes.push(element("p", {}, context.slice(0, start), element("mark", {}, prediction.text),
      context.slice(start + prediction.text.length)));
  }
  const others = Object.entries(prediction).filter(([name, value]) =>
    !["text", "outputs", "captions"].includes(name) && ["string", "number"].includes(typeof value));
  if (others.length) {
    nodes.push(element("table", {}, ...others.map(([name, value]) =>
      element("tr", {}, element("th", { scope: "row" }, name.replaceAll("_", " ")),
        element("td", {}, typeof value === "number" ? +value.toPrecision(4) : value)))));
  }
  return nodes;
}

function classBars(prediction) {
  const rows = Object.entries(prediction.probabilities).sort((a, b) => b[1] - a[1]).slice(0, 20);
  return [element("p", { class: "answer" }, String(prediction.label)), ...rows.map(([name, share]) => {
    const bar = element("i");
    bar.style.width = `${100 * share}%`;
    return element("div", { class: "bar" }, element("span", {}, name), element("span", {}, bar),
      element("span", {}, `${(100 * share).toFixed(1)} %`));
  })];
}

function highlightSpans(prediction, values) {
  const text = values?.text ?? prediction.text;
  const node = element("p", { class: "answer" });
  let end = 0;
  for (const span of prediction.spans) {
    if (!(span.start >= end)) continue;
    node.append(text.slice(end, span.start),
      element("mark", {}, text.slice(span.start, span.end), element("small", {}, span.label)));
    end = span.end;
  }
  node.append(text.slice(end));
  return node;
}

// --- attention

async function showAttention(run) {
  $("attention").hidden = true;
  $("counterfactual").replaceChildren();
  if (!run.has_attention) return;
  const response = await request(`/api/runs/${encodeURIComponent(run.name)}/attention`, state.input);
  const map = await response.json();
  if (run !== state.run) return;
  state.map = prepareMap(map);
  const best = sharpestHead(state.map);
  $("layer").replaceChildren(...state.map.layers.map((layer, index) =>
    element("option", { value: index }, layer.label)));
  $("layer").value = best.layer;
  fillHeads();
  $("head").value = best.head;
  $("attention").hidden = false;
  drawMap();
}

function prepareMap(map) {
  const sides = ["queries", "keys"].map((side) => {
    const [tokens, wordIds] = map[side];
    return { tokens, wordIds };
  });
  const layers = map.layers.map(([name], index) => ({
    name, label: map.labels?.[index] ?? name, heads: map.weights[index],
  }));
  return { queries: sides[0], keys: sides[1], layers, image: map.image, kind: map.layers[0][1] };
}

function entropy(rows) {
  let sum = 0, count = 0;
  for (const row of rows) {
    const total = row.reduce((a, b) => a + b, 0);
    if (total <= 0) continue;
    sum -= row.reduce((h, w) => (w > 0 ? h + (w / total) * Math.log(w / total) : h), 0);
    count += 1;
  }
  return count ? sum / count : Infinity;
}

function sharpestHead(map) {
  let best = { layer: 0, head: 0, value: Infinity };
  map.layers.forEach((layer, l) => layer.heads.forEach((rows, h) => {
    const value = entropy(rows);
    if (value < best.value) best = { layer: l, head: h, value };
  }));
  return best;
}

function fillHeads() {
  const { heads } = state.map.layers[$("layer").value];
  const options = heads.map((_, index) => element("option", { value: index }, `${index + 1}`));
  if (heads.length > 1) options.push(element("option", { value: "mean" }, "mean of all"));
  $("head").replaceChildren(...options);
}

function currentRows() {
  const { heads } = state.map.layers[$("layer").value];
  if ($("head").value !== "mean") return heads[$("head").value];
  return heads[0].map((row, q) => row.map((_, k) =>
    heads.reduce((sum, rows) => sum + rows[q][k], 0) / heads.length));
}

// Rows of words are means of their pieces; weights of words are sums of theirs.
function mergeWords(rows) {
  const { queries, keys } = state.map;
  const merged = Array.from({ length: Math.max(...queries.wordIds) + 1 }, () =>
    new Array(Math.max(...keys.wordIds) + 1).fill(0));
  const counts = new Array(merged.length).fill(0);
  queries.wordIds.forEach((word) => { counts[word] += 1; });
  rows.forEach((row, q) => row.forEach((weight, k) => {
    merged[queries.wordIds[q]][keys.wordIds[k]] += weight / counts[queries.wordIds[q]];
  }));
  return { rows: merged, queries: words(queries), keys: words(keys) };
}

function words({ tokens, wordIds }) {
  const list = [];
  tokens.forEach((token, index) => {
    const isNew = index === 0 || wordIds[index] !== wordIds[index - 1];
    if (isNew) list.push(token.replace(/^[▁Ġ ]+/u, "") || token);
    else list[list.length - 1] += token.replace(/^##/, "");
  });
  return list;
}

function view() {
  const rows = currentRows();
  if ($("words").checked) return mergeWords(rows);
  return { rows, queries: state.map.queries.tokens, keys: state.map.keys.tokens };
}

function drawMap() {
  const { rows, queries, keys } = view();
  const top = Math.max(2 / keys.length, ...rows.map((row) => Math.max(...row)));
  const layer = state.map.layers[$("layer").value];
  const head = $("head").value === "mean" ? "the mean of all heads" : `head ${+$("head").value + 1}`;
  $("sentence").textContent = `Each row is a token that attends, each column one that it attends to: `
    + `${layer.label}, ${head}. The page opens with the sharpest head.`;
  $("top").textContent = `${(100 * top).toFixed(0)} %`;
  const canAblate = $("head").value !== "mean";
  $("ablate").hidden = !canAblate;
  drawReading(rows, queries, keys, top);
  $("map").replaceChildren(state.map.kind === "grid" ? drawGrid(rows, top) : drawMatrix(rows, queries, keys, top));
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const accent = () => getComputedStyle(document.documentElement).getPropertyValue("--accent");
const short = (text, length = 14) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

function drawMatrix(rows, queries, keys, top) {
  const width = Math.max(300, $("map").clientWidth || 600);
  const left = 12 + 7.5 * Math.min(14, Math.max(...queries.map((text) => text.length)));
  const above = 12 + 6 * Math.min(14, Math.max(...keys.map((text) => text.length)));
  const cell = Math.max(15, Math.min(44, (width - left - 12) / keys.length));
  const height = above + cell * queries.length + 8;
  const color = accent();
  const node = svg("svg", { width: left + cell * keys.length + 40, height, role: "img",
    "aria-label": `Attention of ${queries.length} tokens to ${keys.length} tokens` });
  keys.forEach((text, k) => {
    const x = left + cell * (k + 0.6);
    node.append(svg("text", { transform: `translate(${x} ${above - 6}) rotate(-50)` }, short(text)));
  });
  rows.forEach((row, q) => {
    const y = above + cell * q;
    node.append(svg("text", { x: left - 6, y: y + cell / 2 + 4, "text-anchor": "end" }, short(queries[q])));
    row.forEach((weight, k) => node.append(svg("rect", {
      x: left + cell * k, y, width: cell - 1, height: cell - 1, rx: 2,
      fill: `rgba(${color}, ${Math.min(1, weight / top).toFixed(3)})`,
    }, svg("title", {}, `${queries[q]} → ${keys[k]}: ${(100 * weight).toFixed(1)} %`))));
  });
  return node;
}

function drawGrid(rows, top) {
  const height = 360, width = (height * rows[0].length) / rows.length, color = accent();
  const node = svg("svg", { width, height, role: "img", "aria-label": "Attention over the image" });
  if (state.map.image) {
    node.append(svg("image", { href: `data:image/png;base64,${state.map.image}`, width, height,
      preserveAspectRatio: "none" }));
  }
  rows.forEach((row, r) => row.forEach((weight, c) => node.append(svg("rect", {
    x: (c * width) / row.length, y: (r * height) / rows.length,
    width: width / row.length, height: height / rows.length,
    fill: `rgba(${color}, ${(0.85 * Math.min(1, weight / top)).toFixed(3)})`,
  }, svg("title", {}, `${(100 * weight).toFixed(1)} %`)))));
  return node;
}

function drawReading(rows, queries, keys, top) {
  $("reading").replaceChildren();
  if (state.map.kind === "grid") return;
  const color = accent();
  const keyNodes = keys.map((text) => element("span", { class: "token" }, text));
  const select = (q, buttons) => {
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", index === q));
    keyNodes.forEach((node, k) => {
      node.style.background = `rgba(${color}, ${(0.8 * Math.min(1, rows[q][k] / top)).toFixed(3)})`;
      node.title = `${(100 * rows[q][k]).toFixed(1)} %`;
    });
  };
  const buttons = queries.map((text, q) => element("button", { type: "button", class: "token",
    onmouseenter: () => select(q, buttons), onfocus: () => select(q, buttons),
    onclick: () => select(q, buttons) }, text));
  $("reading").append(
    element("div", {}, element("b", {}, "Choose a token that attends"), ...buttons),
    element("div", {}, element("b", {}, "What it attends to"), ...keyNodes));
  select(0, buttons);
}

async function ablate() {
  const name = `L${+$("layer").value + 1}.H${+$("head").value + 1}`;
  const { heads } = state.map.layers[$("layer").value];
  const word = heads.length > 1 ? name : name.replace(/\.H.*/, "");
  showError(null);
  try {
    const path = `/api/runs/${encodeURIComponent(state.run.name)}/counterfactual`;
    const { original, edited } = await (await request(path, { ...state.input, ablate: [word] })).json();
    $("counterfactual").replaceChildren(element("div", { class: "pair" },
      element("div", {}, element("b", {}, "As it is"), element("p", {}, original.text)),
      element("div", {}, element("b", {}, `Without ${word}`),
        element("p", {}, original.text === edited.text ? `${edited.text} (unchanged)` : edited.text))));
  } catch (error) { showError(error); }
}

function savePicture() {
  const node = $("map").querySelector("svg").cloneNode(true);
  const ink = getComputedStyle(document.body).color, paper = getComputedStyle(document.body).backgroundColor;
  node.querySelectorAll("text").forEach((text) => text.setAttribute("fill", ink));
  node.setAttribute("font-family", "sans-serif");
  node.setAttribute("font-size", "13");
  const width = +node.getAttribute("width"), height = +node.getAttribute("height");
  const image = new Image();
  image.onload = () => {
    const canvas = element("canvas", { width: 2 * width, height: 2 * height });
    const context = canvas.getContext("2d");
    context.fillStyle = paper;
    context.fillRect(0, 0, 2 * width, 2 * height);
    context.drawImage(image, 0, 0, 2 * width, 2 * height);
    element("a", { href: canvas.toDataURL("image/png"), download: "attention.png" }).click();
  };
  const text = new XMLSerializer().serializeToString(node);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

// --- start

async function start() {
  state.runs = await (await request("/api/runs")).json();
  $("run").append(...state.runs.map((run) => element("option", { value: run.name }, run.name)));
  const link = new URLSearchParams(location.hash.slice(1));
  showRun(link.get("run"));
  if (link.get("input")) {
    writeInput(JSON.parse(link.get("input")));
    await predict();
  }
}

$("run").addEventListener("change", () => showRun($("run").value));
$("form").addEventListener("submit", (event) => { event.preventDefault(); predict(); });
$("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); predict(); }
});
$("stop").addEventListener("click", () => state.stop?.abort());
$("examples").addEventListener("change", () => {
  if ($("examples").value !== "") predict(+$("examples").value);
});
$("history").addEventListener("change", () => {
  if ($("history").value !== "") { writeInput(inputHistory()[$("history").value]); predict(); }
});
$("layer").addEventListener("change", () => { fillHeads(); drawMap(); });
for (const id of ["head", "words"]) $(id).addEventListener("change", drawMap);
$("ablate").addEventListener("click", ablate);
$("save").addEventListener("click", savePicture);
window.addEventListener("resize", () => { if (state.map && !$("attention").hidden) drawMap(); });
start().catch(showError);
