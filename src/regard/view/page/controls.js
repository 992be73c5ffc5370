// Controls of a viewer: views, layer and head, words, threshold, zoom, play, search, theme and pictures.

const VIEW_NAMES = { matrix: "Matrix", picture: "Picture", lines: "Lines", text: "Text", search: "Search" };

function availableViews(viewer) {
  const { data } = viewer;
  if (viewer.isPicture) return viewer.headCount > 1 && !data.layers_are_words ? ["picture", "heads"] : ["picture"];
  const views = data.kind === "pool" ? ["text", "matrix"] : ["matrix"];
  if (data.kind !== "pool" && data.kind !== "memory") views.push("lines", "text");
  if (viewer.headCount > 1) views.push("heads");
  if (data.tree.some(([, , , isBest]) => !isBest)) views.push("search"); // a greedy search has no branches
  return views;
}

function buildControls(viewer, tools) {
  const { parts, options, data } = viewer;
  const field = (part, text, control) => {
    const wrapper = element("label", { class: "field", "data-field": part }, tools);
    element("span", {}, wrapper, text);
    wrapper.append(control);
    parts[part] = control;
    return wrapper;
  };
  const group = (part, name) => { parts[part] = element("div", { class: "segments", role: "group", "aria-label": name, "data-part": part }, tools); return parts[part]; };
  const views = group("views", "View");
  for (const view of viewer.views) {
    button(view === "heads" ? `All ${viewer.headNoun}s` : VIEW_NAMES[view], { "data-view": view }, views, () => viewer.change({ view }));
  }
  field("layer", data.layers_are_words ? "Word" : "Layer", element("select", { "data-part": "layer" }));
  field("head", "Head", element("select", { "data-part": "head" }));
  if (hasWords(data)) {
    const units = group("units", "Units");
    button("Words", { "data-words": "yes" }, units, () => viewer.change({ words: true }));
    button(`${capitalized(pieceName(data, data.queries))}s`, { "data-words": "no" }, units, () => viewer.change({ words: false }));
  }
  field("threshold", "Lines from", element("input", { type: "range", min: 1, max: 95, step: 1, "data-part": "threshold" }));
  parts.thresholdText = element("output", { class: "faint", "data-part": "threshold-text" }, tools);
  const zoom = group("zoom", "Size of the cells");
  button("−", { "aria-label": "Smaller cells" }, zoom, () => viewer.zoom(1 / 1.5));
  button("Fit", {}, zoom, () => viewer.change({ zoom: null }));
  button("+", { "aria-label": "Larger cells" }, zoom, () => viewer.zoom(1.5));
  parts.play = button("", { "data-part": "play", class: "play" }, tools, () => viewer.player.toggle());
  field("dim", "Cover", element("input", { type: "range", min: 0, max: 100, step: 5, "data-part": "dim" }));
  buildActions(viewer, tools);
  parts.layer.addEventListener("change", ({ target }) => viewer.change({ layer: Number(target.value) }));
  parts.head.addEventListener("change", ({ target }) => viewer.change({ head: isNaN(target.value) ? target.value : Number(target.value) }));
  parts.threshold.addEventListener("input", ({ target }) => viewer.change({ threshold: Number(target.value) / 100 }));
  parts.dim.addEventListener("input", ({ target }) => viewer.change({ dim: Number(target.value) / 100 }));
  if (!options.actions?.length) return;
  const actions = element("div", { class: "actions" }, tools);
  for (const action of options.actions) button(action.label, { class: "action" }, actions, () => action.run(viewer.selection()));
}

function buildActions(viewer, tools) { // not in a compact viewer
  const { parts, options } = viewer;
  if (options.compact) return;
  parts.find = element("input", { type: "search", size: 10, placeholder: "Find a word", "aria-label": "Find a word", "data-part": "find" }, tools);
  parts.find.addEventListener("input", ({ target }) => viewer.change({ find: target.value.toLowerCase() }));
  const save = element("div", { class: "segments end", role: "group", "aria-label": "Save and theme" }, tools);
  button("PNG", { "data-part": "png", title: "Save as a picture" }, save, () => savePicture(viewer, "png"));
  button("SVG", { "data-part": "svg", title: "Save as a vector picture" }, save, () => savePicture(viewer, "svg"));
  button("◐", { "data-part": "theme", title: "Light or dark (d)", "aria-label": "Light or dark" }, save, toggleTheme);
}

function setOptions(select, names, selected) {
  select.replaceChildren(...names.map(([value, text]) => new Option(text, value, false, String(value) === String(selected))));
}

function showControls(viewer) {
  const { parts, state, data } = viewer;
  const layer = data.layers[state.layer];
  const isHeadView = !["heads", "search"].includes(state.view);
  const show = (part, isShown) => { (parts[part].closest(".field") ?? parts[part]).hidden = !isShown; };
  setOptions(parts.layer, data.layers.map(({ name }, n) => [n, data.layers_are_words ? `${n + 1} ${name}` : name]), state.layer);
  setOptions(parts.head, [...range(layer.heads).map((n) => [n, n + 1]), ["mean", "mean"], ["max", "max"]], state.head);
  show("layer", isHeadView && data.layers.length > 1);
  show("head", isHeadView && layer.heads > 1);
  show("views", viewer.views.length > 1);
  if (parts.units) show("units", isHeadView);
  show("threshold", state.view === "lines");
  parts.thresholdText.hidden = state.view !== "lines";
  if (state.view === "lines") {
    const [threshold, text] = thresholdSentence(viewer);
    parts.threshold.value = Math.round(100 * threshold);
    parts.threshold.setAttribute("aria-valuetext", percent(threshold));
    parts.thresholdText.textContent = `${percent(threshold).replace(/\.\d/, "")}: ${text}`;
  }
  show("zoom", state.view === "matrix" && labelsOf(viewer).some((labels) => labels.length > 12));
  show("dim", state.view === "picture");
  if (parts.find) show("find", !viewer.isPicture && !["heads", "search"].includes(state.view));
  parts.dim.value = Math.round(100 * state.dim);
  const canPlay = (state.view === "text" && data.kind !== "pool") || (state.view === "picture" && data.layers_are_words && data.layers.length > 1);
  show("play", canPlay);
  showPlaying(viewer);
  for (const node of parts.views.children) node.setAttribute("aria-pressed", String(node.dataset.view === state.view));
  for (const node of parts.units?.children ?? []) node.setAttribute("aria-pressed", String((node.dataset.words === "yes") === state.words));
}

function showPlaying(viewer) {
  const { isPlaying } = viewer.player;
  viewer.parts.play.textContent = isPlaying ? "❚❚ Pause" : "▶ Play";
  viewer.parts.play.setAttribute("aria-pressed", String(isPlaying));
}

function buildPlayer(viewer) { // one query after another
  let timer = 0;
  const player = {
    isPlaying: false,
    toggle() { if (player.isPlaying) player.stop(); else player.start(); },
    start() {
      if (viewer.parts.play.hidden) return;
      player.isPlaying = true;
      timer = setInterval(() => viewer.step(1), 900);
      showPlaying(viewer);
    },
    stop() { player.isPlaying = false; clearInterval(timer); if (viewer.parts.play) showPlaying(viewer); },
  };
  return player;
}

function buildKeys(viewer) {
  const view = (number) => () => { if (viewer.views[number - 1]) viewer.change({ view: viewer.views[number - 1] }); };
  const move = (by, what) => () => viewer.move(by, what);
  return {
    ArrowLeft: move(-1, "head"), ArrowRight: move(1, "head"), ArrowUp: move(-1, "layer"), ArrowDown: move(1, "layer"),
    1: view(1), 2: view(2), 3: view(3), 4: view(4), 5: view(5), 6: view(6),
    j: () => viewer.step(1), k: () => viewer.step(-1), h: () => viewer.stepKey(-1), l: () => viewer.stepKey(1),
    w: () => { if (hasWords(viewer.data)) viewer.change({ words: !viewer.state.words }); },
    p: () => viewer.player.toggle(), "+": () => viewer.zoom(1.5), "-": () => viewer.zoom(1 / 1.5), 0: () => viewer.change({ zoom: null }),
    d: toggleTheme, "/": () => viewer.parts.find?.focus(), Escape: () => viewer.player.stop(),
  };
}

const KEY_HELP = [
  ["← →", "head"], ["↑ ↓", "layer"], ["1 to 6", "view"], ["j k", "next and previous row"], ["h l", "previous and next column"],
  ["w", "words or subwords"], ["p", "play or pause"], ["+ − 0", "size of the cells"], ["/", "find"], ["d", "light or dark"],
];
