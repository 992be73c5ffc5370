// The words in reading order: the keys are shaded by the weight of the selected query, which can be played.

const MAX_NUMBERED_WORDS = 40; // a longer text has no weights below its words

function shadedWord(viewer, parent, text, weight, top, attributes = {}) {
  const word = element("span", { class: "word", title: percent(weight), ...attributes }, parent, text || "·");
  if (weight >= 0.0005) {
    word.style.background = weightColor(viewer.theme, weight, top);
    word.style.color = inkOn(viewer.theme, weight, top);
  }
  if (viewer.isFound(text)) word.classList.add("found");
  parent.append(" ");
  return word;
}

function drawText(viewer, stage) {
  const board = element("div", { class: "text" }, stage);
  const draw = () => {
    board.replaceChildren();
    if (viewer.data.kind === "pool") drawPooledText(viewer, board);
    else if (viewer.data.kind === "self") drawOneText(viewer, board);
    else drawTwoTexts(viewer, board);
    drawChoices(viewer, board);
  };
  draw();
  return { highlight: draw, toSvg: () => matrixSvg(viewer) };
}

function queryWord(viewer, parent, text, row) {
  const { state, data } = viewer;
  const isLater = data.choices.length && data.kind !== "self" && row > state.row; // an output is written from left to right
  const attributes = { class: `word query${isLater ? " later" : ""}`, "aria-pressed": String(row === state.row), "data-row": row };
  const node = button(text || "·", attributes, parent, () => {
    viewer.point(row, null, { isClick: true });
    viewer.clickQuery(row, viewer.parts.view.querySelector(`.query[data-row="${row}"]`) ?? node);
    viewer.parts.view.querySelector(`.query[data-row="${row}"]`)?.focus();
  });
  node.addEventListener("pointerenter", () => {
    if (viewer.player.isPlaying || viewer.state.row === row) return;
    viewer.point(row, null, { isQuiet: true });
  });
  if (viewer.isFound(text)) node.classList.add("found");
  parent.append(" ");
  return node;
}

function drawTwoTexts(viewer, board) {
  const [rows, columns] = labelsOf(viewer);
  const [query, key] = nouns(viewer);
  const { state, weights } = viewer;
  element("p", { class: "heading" }, board, `${capitalized(key)}s, shaded by their weight`);
  const keyLine = element("p", { class: "running", dir: "auto" }, board);
  columns.forEach((token, k) => shadedWord(viewer, keyLine, token, weights[state.row * columns.length + k], scaleTop(viewer)));
  element("p", { class: "heading" }, board, `${capitalized(query)}s: select one`);
  const queryLine = element("p", { class: "running", dir: "auto" }, board);
  rows.forEach((token, q) => queryWord(viewer, queryLine, token, q));
}

function drawOneText(viewer, board) { // queries and keys are the same words
  const [rows] = labelsOf(viewer);
  const { state, weights, theme } = viewer;
  const line = element("p", { class: "running", dir: "auto" }, board);
  rows.forEach((token, n) => {
    const node = queryWord(viewer, line, token, n);
    const weight = weights[state.row * rows.length + n];
    node.title = percent(weight);
    if (weight < 0.0005) return;
    node.style.background = weightColor(theme, weight, scaleTop(viewer));
    node.style.color = inkOn(theme, weight, scaleTop(viewer));
  });
}

function drawPooledText(viewer, board) { // a paragraph for each row, with the keys that it has weights for
  const [rows, columns] = labelsOf(viewer);
  const { weights } = viewer;
  const top = Math.max(scaleTop(viewer) * 0.999, 1e-6);
  rows.forEach((name, q) => {
    const row = weights.subarray(q * columns.length, (q + 1) * columns.length);
    const used = range(columns.length).filter((k) => row[k] > 0);
    if (!used.length) return;
    const group = element("div", { class: "pooled" }, board);
    if (rows.length > 1) element("p", { class: "heading" }, group, capitalized(name));
    const isShort = rows.length === 1 && used.length <= MAX_NUMBERED_WORDS;
    const line = element("p", { class: isShort ? "running numbered" : "running", dir: "auto" }, group);
    for (let k = used[0]; k <= used.at(-1); k++) {
      const parent = isShort ? element("span", { class: "weighed" }, line) : line;
      const word = shadedWord(viewer, parent, columns[k], row[k], top);
      if (isShort) element("small", { "aria-hidden": "true" }, parent, percent(row[k]));
      word.addEventListener("pointerenter", () => { Object.assign(viewer.state, { row: q, key: k }); viewer.announce(rowSentence(viewer)); });
      word.addEventListener("pointerleave", () => { viewer.state.key = null; viewer.announce(rowSentence(viewer)); });
    }
  });
}

function choicePositions(viewer) { // steps of the selected query: [step, the token that was written]
  const { data, state } = viewer;
  if (data.layers_are_words) return [[state.layer, data.layers[state.layer].name]];
  const { tokens, word } = data.queries;
  const positions = viewer.state.words && hasWords(data) ? range(tokens.length).filter((n) => word[n] === state.row) : [state.row];
  if (data.kind === "self") return [[positions.at(-1), tokens[positions.at(-1) + 1] ?? null]]; // it predicts the next token
  return positions.map((n) => [n, tokens[n]]);
}

function drawChoices(viewer, board) { // what else could have been written
  const { data } = viewer;
  if (!data.choices.length) return;
  const row = element("div", { class: "choices-row" }, board);
  const positions = choicePositions(viewer);
  for (const [position, written] of positions) {
    const group = element("div", {}, row);
    const place = data.kind === "self" ? `after ${quoted(data.queries.labels[position])}` : positions.length > 1 ? `for ${quoted(data.queries.labels[position])}` : "here";
    element("p", { class: "heading" }, group, `Likeliest ${place}`);
    const list = element("ol", { class: "choices" }, group);
    const choices = data.choices[position].filter(([token, probability]) => probability >= 0.001 || token === written);
    for (const [token, probability] of choices) {
      const item = element("li", { class: plainToken(token) === plainToken(written ?? "") ? "chosen" : "" }, list);
      element("span", {}, item, plainToken(token) || "␣");
      element("i", { class: "bar" }, item).style.setProperty("--share", probability);
      element("span", { class: "number" }, item, percent(probability));
    }
  }
}
