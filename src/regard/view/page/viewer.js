// A viewer of one attention map.
//
//   const viewer = createViewer(container, data, options);   // data: viewer_data() of Python
//   await viewer.ready;
//   viewer.show(data, state); viewer.state(); viewer.select(query); viewer.destroy();
//
// options:
//   compact        leave out search, pictures, theme, the side panel and the table
//   actions        buttons: [{label, run(selection)}]
//   onSelect       called with the selection when it changes
//   onQueryClick   called with (query, anchorElement) when a query is clicked; query counts tokens: of a word, its first
//   storageKey     remembers view and units under this key in localStorage
//   state          the first {layer, head, view, words, query}, each optional
//   keyTarget      where keys are heard; default: the container
//
// selection: {view, layer, head, query, key, words, queryText, keyText}. Layers and heads count from 0; head may be "mean" or
// "max"; query and key count words if `words` is true, else tokens; key is null if no cell is selected.

const DRAW = { matrix: drawMatrix, lines: drawLines, text: drawText, heads: drawOverview, search: drawSearchTree, picture: drawPicture };

function createViewer(container, data, options = {}) {
  const viewer = { container, options, parts: {}, state: {} };
  Object.assign(viewer, viewerMethods(viewer));
  const ready = viewer.load(data, { ...readStorage(options.storageKey), ...options.state });
  const redraw = () => { if (viewer.isReady) viewer.render(); };
  const stopTheme = watchTheme(redraw);
  let size = "";
  const observer = new ResizeObserver(() => {
    const next = `${container.clientWidth} ${innerHeight}`;
    if (next !== size && viewer.isReady) requestAnimationFrame(redraw);
    size = next;
  });
  observer.observe(container);
  const keyTarget = options.keyTarget ?? container;
  const onKey = (event) => handleKey(viewer, event);
  keyTarget.addEventListener("keydown", onKey);
  return {
    ready,
    show: (newData, state = {}) => viewer.load(newData, { ...keptState(viewer), ...state }),
    state: () => viewer.selection(),
    select(query) { if (viewer.isReady) viewer.selectQuery(query); },
    destroy() {
      viewer.player.stop();
      viewer.clear();
      stopTheme();
      observer.disconnect();
      keyTarget.removeEventListener("keydown", onKey);
      container.replaceChildren();
      container.classList.remove("viewer");
      delete container.dataset.ready;
    },
  };
}

const keptState = ({ state }) => ({ view: state.view, words: state.words });

function readStorage(key) {
  try { return key ? JSON.parse(localStorage.getItem(key) ?? "{}") : {}; } catch { return {}; }
}

function writeStorage(key, state) {
  try { if (key) localStorage.setItem(key, JSON.stringify(state)); } catch { /* a sandboxed page has no storage */ }
}

function handleKey(viewer, event) {
  if (!viewer.isReady || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches?.("input, select, textarea") || event.target.isContentEditable) return;
  const action = viewer.keys[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function firstState(viewer, wanted) {
  const { data } = viewer;
  const { layer, head } = data.clearest;
  const state = { view: viewer.firstView, layer, head, words: startsWithWords(data), row: firstWord(data), key: null, cell: null, find: "", threshold: null, zoom: null, dim: 1, smooth: null };
  if (viewer.headCount < 2) Object.assign(state, { layer: 0, head: 0 });
  const { view, words, query } = wanted;
  if (viewer.views.includes(view)) state.view = view;
  if (typeof words === "boolean" && hasWords(data)) state.words = words;
  if (wanted.layer >= 0 && wanted.layer < data.layers.length) {
    state.layer = wanted.layer;
    const isHead = ["mean", "max"].includes(wanted.head) || (wanted.head >= 0 && wanted.head < data.layers[wanted.layer].heads);
    state.head = isHead ? wanted.head : Math.min(state.head, data.layers[wanted.layer].heads - 1);
  }
  if (query >= 0) state.row = query;
  return state;
}

function firstWord({ queries, kind }) { // in the first units; special tokens tell less
  const labels = startsWithWords({ queries, keys: queries }) ? queries.words : queries.labels;
  return kind === "self" ? Math.max(0, labels.findIndex((text) => !isSpecial(text))) : 0;
}

function buildParts(viewer) {
  const { container, parts, options } = viewer;
  container.replaceChildren();
  container.classList.add("viewer");
  const frame = element("div", { class: options.compact ? "viewer-frame compact" : "viewer-frame" }, container);
  const part = (name, tag, attributes = {}, parent = frame) => { parts[name] = element(tag, { "data-part": name, ...attributes }, parent); return parts[name]; };
  const head = element("div", { class: "lead" }, frame);
  part("lead", "p", {}, head);
  part("opening", "p", { class: "faint" }, head);
  part("tools", "div", { class: "tools" });
  part("view", "div", { class: "stage", tabindex: 0, role: "group", "aria-label": "Attention" });
  part("side", "div", { class: "side", role: "group", "aria-label": "Selected row and all heads" });
  const foot = element("div", { class: "foot" }, frame);
  part("scale", "div", { class: "scale" }, foot);
  const notes = element("div", { class: "notes" }, foot);
  part("status", "p", { role: "status", "aria-live": "polite" }, notes);
  part("statistics", "p", { class: "faint" }, notes);
  part("gold", "p", { class: "faint" }, notes);
  if (options.compact) return;
  const more = element("div", { class: "more" }, frame);
  part("table", "details", {}, more);
  element("summary", {}, parts.table, "Table");
  part("numbers", "div", { class: "numbers", tabindex: 0, role: "region", "aria-label": "Weights as a table" }, parts.table);
  parts.table.addEventListener("toggle", () => showTable(viewer));
  const help = element("details", {}, more);
  element("summary", {}, help, "Keyboard");
  const list = element("p", { class: "keys" }, help);
  KEY_HELP.forEach(([keys, text]) => { const item = element("span", {}, list); element("kbd", {}, item, keys); item.append(` ${text}`); });
}

function viewerMethods(viewer) {
  viewer.player = buildPlayer(viewer);
  viewer.keys = buildKeys(viewer);
  return {
    async load(data, wanted) {
      const layers = await readLayers(data);
      viewer.clear();
      viewer.player.stop();
      viewer.parts = {};
      Object.assign(viewer, { data, layers, picture: null, hovered: null, isPicture: data.kind === "grid" });
      viewer.headNoun = data.layers.every(({ heads }) => heads === 1) ? "layer" : "head";
      viewer.headCount = data.layers.reduce((sum, { heads }) => sum + heads, 0);
      viewer.views = availableViews(viewer);
      viewer.firstView = viewer.views[0];
      if (viewer.isPicture) await loadPicture(viewer);
      viewer.state = firstState(viewer, wanted);
      buildParts(viewer);
      buildControls(viewer, viewer.parts.tools);
      viewer.isReady = true;
      viewer.render();
      viewer.container.dataset.ready = "yes";
    },
    clear() { viewer.drawing?.destroy?.(); viewer.miniature?.disconnect(); },
    render() {
      const { state, parts, data } = viewer;
      viewer.clear();
      viewer.theme = readTheme(viewer.container);
      if (typeof state.head === "number") state.head = Math.min(state.head, data.layers[state.layer].heads - 1);
      viewer.weights = currentWeights(viewer);
      state.row = clamp(state.row, 0, Math.max(0, labelsOf(viewer)[0].length - 1));
      if (state.key !== null) state.key = clamp(state.key, 0, labelsOf(viewer)[1].length - 1);
      showControls(viewer);
      parts.lead.textContent = leadSentence(viewer);
      parts.opening.textContent = [readingSentence(viewer), openingReason(viewer)].filter(Boolean).join(" ");
      viewer.miniature = viewer.options.compact ? null : drawDetails(viewer, parts.side);
      parts.side.hidden ||= Boolean(viewer.options.compact);
      viewer.showScale();
      parts.statistics.textContent = ["heads", "search"].includes(state.view) ? "" : statisticsSentence(viewer);
      parts.gold.textContent = state.view === "matrix" ? goldSentence(viewer) : "";
      viewer.announce(["heads", "search"].includes(state.view) ? "" : rowSentence(viewer));
      parts.view.replaceChildren();
      parts.view.onscroll = null;
      parts.view.dataset.view = state.view;
      viewer.drawing = DRAW[state.view](viewer, parts.view);
      if (parts.table) showTable(viewer);
    },
    showScale() {
      const { parts, theme, state } = viewer;
      parts.scale.replaceChildren();
      if (["search", "lines"].includes(state.view)) return;
      const board = svg("svg", { width: 280, height: 48, viewBox: "-8 0 280 48", role: "img", "aria-label": `Colors from weight 0 to ${percent(scaleTop(viewer))}; an even weight is ${percent(evenWeight(viewer))}` }, parts.scale);
      drawScale(board, { theme, top: scaleTop(viewer), even: evenWeight(viewer), width: 264, ...pictureScale(viewer) });
    },
    stageHeight: () => {
      const fixed = viewer.parts.view.clientHeight;
      return getComputedStyle(viewer.parts.view).flexGrow === "1" && fixed > 200 ? fixed - 2 : Math.max(260, innerHeight * (viewer.options.compact ? 0.5 : 0.62));
    },
    announce(text) { if (viewer.parts.status.textContent !== text) viewer.parts.status.textContent = text; },
    isFound: (text) => viewer.state.find !== "" && text.toLowerCase().includes(viewer.state.find),
    change(changes) {
      if ("layer" in changes || "head" in changes) viewer.state.threshold = null;
      if ("words" in changes && changes.words !== viewer.state.words) Object.assign(viewer.state, { row: otherUnit(viewer), key: null, threshold: null });
      Object.assign(viewer.state, changes);
      viewer.render();
      if ("find" in changes && viewer.state.find) viewer.revealFound();
      writeStorage(viewer.options.storageKey, keptState(viewer));
      viewer.options.onSelect?.(viewer.selection());
    },
    revealFound() {
      const [rows, columns] = labelsOf(viewer);
      const row = rows.findIndex(viewer.isFound);
      const key = columns.findIndex(viewer.isFound);
      if (row >= 0) viewer.point(row, null);
      viewer.drawing.reveal?.(row >= 0 ? row : viewer.state.row, key >= 0 ? key : null);
    },
    point(row, key) { // the row and the cell under the pointer, or those of the keyboard
      if (row === viewer.state.row && key === viewer.state.key) return;
      Object.assign(viewer.state, { row, key });
      viewer.announce(rowSentence(viewer));
      showRowBars(viewer, viewer.parts.side);
      viewer.drawing.highlight?.();
      viewer.options.onSelect?.(viewer.selection());
    },
    clickQuery(row, anchor) {
      const { queries } = viewer.data;
      const isWord = showsWords(viewer) && hasWords(viewer.data);
      viewer.options.onQueryClick?.(isWord && !viewer.isPicture ? queries.word.indexOf(row) : row, anchor);
    },
    selectQuery(query) { // by its number in the current units
      if (viewer.data.layers_are_words) { viewer.change({ layer: clamp(query, 0, viewer.data.layers.length - 1) }); return; }
      viewer.point(clamp(query, 0, labelsOf(viewer)[0].length - 1), null);
      viewer.drawing.reveal?.(viewer.state.row, null);
    },
    step(by) { // to the next query
      const { data, state } = viewer;
      if (data.layers_are_words) { viewer.change({ layer: (state.layer + by + data.layers.length) % data.layers.length }); return; }
      if (viewer.isPicture) return;
      const count = labelsOf(viewer)[0].length;
      viewer.selectQuery((state.row + by + count) % count);
    },
    stepKey(by) {
      if (viewer.isPicture) return;
      const count = labelsOf(viewer)[1].length;
      viewer.point(viewer.state.row, viewer.state.key === null ? 0 : (viewer.state.key + by + count) % count);
      viewer.drawing.reveal?.(viewer.state.row, viewer.state.key);
    },
    move(by, what) {
      const { state, data } = viewer;
      if (what === "layer" || data.layers_are_words) viewer.change({ layer: (state.layer + by + data.layers.length) % data.layers.length });
      else {
        const heads = data.layers[state.layer].heads;
        const choices = heads > 1 ? [...range(heads), "mean", "max"] : [0];
        viewer.change({ head: choices[(choices.indexOf(state.head) + by + choices.length) % choices.length] });
      }
    },
    zoom(factor) { viewer.change({ zoom: clamp((viewer.state.zoom ?? 1) * factor, 0.2, 30) }); viewer.drawing.reveal?.(viewer.state.row, viewer.state.key); },
    selection() {
      const { state, data } = viewer;
      if (!viewer.isReady) return { view: "matrix", layer: 0, head: 0, query: 0, key: null, words: true, queryText: "", keyText: "" };
      const [rows, columns] = labelsOf(viewer);
      const query = data.layers_are_words ? state.layer : state.row;
      const queryText = data.layers_are_words ? data.layers[query].name : rows[query] ?? "";
      return { view: state.view, layer: state.layer, head: state.head, query, key: state.key, words: showsWords(viewer), queryText, keyText: columns[state.key] ?? "" };
    },
  };
}

function otherUnit({ state, data }) { // the row in the other units
  const { word } = data.queries;
  return state.words ? Math.max(0, word.indexOf(state.row)) : word[state.row] ?? 0;
}
