// One run with its answer and its attention; the page has one, or two to compare.

function createPane({ onerror, onstate }) {
  const title = make("h2", {}, "Answer");
  const result = make("div", { class: "result" });
  const next = make("div", { class: "next" });
  const json = make("pre", {});
  const raw = make("details", { "data-no-picture": "" }, make("summary", {}, "JSON"), json);
  const tools = make("div", { class: "row tools", "data-no-picture": "" },
    button("Copy picture", ({ currentTarget }) => copyPicture([answerPart, attentionPart]).then(() => confirmOn(currentTarget, "Copied"), onerror)),
    button("Save picture", () => savePicture([answerPart, attentionPart], pane.run.name).catch(onerror)), raw);
  const attentionTitle = make("h2", {}, "Attention");
  const viewerBox = make("div", { class: "viewer-box" });
  const attentionPart = make("section", { class: "attention-part", hidden: true }, attentionTitle, viewerBox);
  const pane = { run: null, input: null, data: null, viewer: null, prediction: null, view: {} };
  const edits = createEdits(pane);
  const answerPart = make("section", { class: "answer-part" }, title, result, next, edits.node, tools);
  const node = make("article", { class: "pane" }, answerPart, attentionPart);
  let controller = null;

  const selectRow = ({ target }) => {
    const query = target.closest?.("[data-query]")?.dataset.query;
    if (query !== undefined && pane.data) select(Number(query));
  };
  ["pointerover", "focusin", "click"].forEach((name) => result.addEventListener(name, selectRow));

  pane.node = node;
  pane.context = () => ({ values: pane.input?.values, run: pane.run, select, width: Math.max(240, result.clientWidth) });

  pane.setRun = (run, isCompared) => {
    controller?.abort();
    Object.assign(pane, { run, input: null, data: null, prediction: null });
    node.setAttribute("aria-label", `Run ${run.name}`);
    title.replaceChildren("Answer", isCompared ? make("span", { class: "run-name" }, run.name) : "");
    result.replaceChildren(make("p", { class: "faint" }, "Give an input, or take an example."));
    [json, next].forEach((part) => part.replaceChildren());
    tools.hidden = attentionPart.hidden = edits.node.hidden = true;
    destroyViewer();
  };

  pane.stop = () => controller?.abort();

  // Predict, then fetch the attention and the details; texts appear as they are written.
  pane.predict = async (input) => {
    controller?.abort();
    controller = new AbortController();
    const { signal } = controller, { run } = pane;
    result.setAttribute("aria-busy", "true");
    const live = make("p", { class: "answer live" });
    try {
      const prediction = await streamPrediction(run, input, { signal, onText: (text) => {
        if (!live.isConnected) result.replaceChildren(live);
        live.textContent = text;
      } });
      Object.assign(pane, { input, prediction });
      show();
      announce(`${run.name}: ${prediction.text}`);
      await Promise.all([showAttention(signal), showDetails(signal)]);
      return prediction;
    } finally { result.setAttribute("aria-busy", "false"); }
  };

  function show() {
    result.replaceChildren(...predictionNodes(pane.prediction, pane.context()).filter(Boolean));
    json.textContent = JSON.stringify(pane.prediction, null, 2);
    tools.hidden = false;
    next.replaceChildren();
    edits.reset();
  }

  async function showAttention(signal) {
    const { run } = pane;
    attentionPart.hidden = !run.has_attention;
    if (!run.has_attention) { destroyViewer(); return; }
    try { pane.data = await fetchAttention(run, pane.input, signal); } catch (error) {
      destroyViewer();
      if (error.name === "AbortError") throw error;
      viewerBox.replaceChildren(make("p", { class: "faint" }, `No map: ${error.message}`));
      return;
    }
    await showViewer();
    result.querySelectorAll(".rows").forEach((text) => linkRows(text, pane.data));
    result.querySelectorAll(".slider input").forEach(({ value }) => select(Number(value)));
    result.querySelectorAll(".linked").forEach((text) => linkWords(text, pane.data, chooseAlternative));
  }

  async function showViewer() {
    if (pane.viewer) { await pane.viewer.show(pane.data); return; }
    viewerBox.replaceChildren();
    pane.viewer = createViewer(viewerBox, pane.data, { compact: true, actions: viewerActions(), state: pane.view,
      onSelect: (selection) => { pane.view = selection; onstate(); },
      onQueryClick: (query, anchor) => {
        const index = outputTokens(pane.data).findIndex((candidate) => candidate.query === query);
        if (index >= 0) chooseAlternative(index, anchor);
      } });
    await pane.viewer.ready;
  }

  function viewerActions() {
    const actions = [];
    if (pane.run.attentions.length === pane.data.layers.length) {
      actions.push({ label: "Switch this head off", run: ({ layer, head }) => edits.toggle(layer, head) });
    }
    if (pane.run.accepts_links) {
      actions.push({ label: "Force this link", run: ({ query, key, words }) => {
        const wordAt = (side, n) => side.words[words ? n : side.word[n]]; // links join words, whatever is shown
        if (key === null) onerror(new Error("choose a cell of the map first: a word, and what it shall attend to"));
        else edits.force(wordAt(pane.data.queries, query), wordAt(pane.data.keys, key));
      } });
    }
    return actions;
  }

  function destroyViewer() {
    pane.viewer?.destroy();
    pane.viewer = null;
    viewerBox.replaceChildren();
  }

  function select(query) {
    if (!pane.viewer) return;
    const isGrid = pane.data.kind === "grid", word = pane.data.queries.word[query];
    if (!isGrid && word === undefined) return;
    pane.viewer.select(!isGrid && pane.viewer.state().words ? word : query);
  }

  // Let the model go on from another token.
  function chooseAlternative(index, anchor) {
    const tokens = outputTokens(pane.data), { name, choices } = tokens[index];
    if (!choices.length || !pane.run.accepts_prefix) return;
    openAlternatives(anchor, choices, name, async (chosen) => {
      onerror(null);
      const prefix = [...tokens.slice(0, index).map((token) => token.name), chosen];
      try { await pane.predict({ ...pane.input, prefix }); } catch (error) { onerror(error); }
    });
  }

  async function showDetails(signal) {
    if (!pane.run.has_details) return;
    const details = await fetchDetails(pane.run, { ...pane.input, values: completedText(pane.run, pane.input.values) }, signal).catch(() => ({}));
    next.replaceChildren(...detailNodes(details));
  }
  return pane;
}

// A text whose last word is complete: the next words come after it, and do not complete it.
function completedText(run, values) {
  if (!values) return values;
  const isText = ({ name, kind }) => ["text", "lines"].includes(kind) && typeof values[name] === "string" && values[name];
  return { ...values, ...Object.fromEntries(run.fields.filter(isText).map(({ name }) => [name, `${values[name].trimEnd()} `])) };
}

// The likeliest next words or keys, and which words of a summary were copied.
function detailNodes({ next = [], words = [] }) {
  const nodes = [];
  if (next.length) {
    nodes.push(make("details", { open: true }, make("summary", {}, "Likeliest next after the input"), make("div", { class: "bars" },
      ...next.map(({ word, pitch, probability }) => barRow(word ?? noteName(pitch), probability)))));
  }
  if (words.length) {
    nodes.push(make("h3", {}, "Copied from the input"), make("p", { class: "copied" }, ...words.filter(({ word }) => !isSpecial(word)).flatMap(({ word, copied }) => [
      make("span", { class: "share", style: `--share:${Math.round(40 * copied)}%`, title: `${percent(copied)} copied` }, word), " "])));
  }
  return nodes;
}
