// Edits of the attention: heads that are off and links that are forced, with the answer before and after.

function createEdits(pane) {
  const heads = new Set(), links = new Set();
  const chips = make("p", { class: "chips" });
  const result = make("div", { class: "before-after", role: "group", "aria-label": "Before and after", hidden: true });
  const board = make("div", { class: "heads" });
  const box = make("details", { class: "edits" }, make("summary", {}, "Switch heads off"), board);
  const node = make("div", {}, box, chips, result);

  const allHeads = () => pane.run.attentions.flatMap(({ label, heads: count }, layer) =>
    Array.from({ length: Math.max(1, count) }, (_, head) => ({ layer, head, label,
      name: count > 1 ? `L${layer + 1}.H${head + 1}` : `L${layer + 1}` })));

  function headName(layer, head) {
    const count = pane.run.attentions[layer]?.heads ?? 0;
    return count > 1 && Number.isInteger(head) ? `L${layer + 1}.H${head + 1}` : `L${layer + 1}`;
  }

  function title(name) {
    const [, layer, head] = /^L(\d+)(?:\.H(\d+))?$/.exec(name);
    const label = pane.run.attentions[layer - 1]?.label ?? name;
    return head ? `${label}, head ${head}` : label;
  }

  function showBoard() {
    const rows = pane.run.attentions.map(({ label }, layer) => make("div", { class: "head-row" },
      make("span", {}, label),
      make("span", { class: "head-buttons" }, ...allHeads().filter((head) => head.layer === layer).map(({ name, head }) =>
        button(`${head + 1}`, () => toggle(name), { "aria-pressed": heads.has(name), class: "head",
          "aria-label": `${pane.run.attentions[layer].label}, head ${head + 1} off` })))));
    board.replaceChildren(...rows);
  }

  function show() {
    showBoard();
    const chip = (text, remove) => make("span", { class: "chip" }, text, button("×", remove, { "aria-label": `Undo: ${text}` }));
    chips.replaceChildren(
      ...[...heads].map((name) => chip(`${title(name)} off`, () => toggle(name))),
      ...[...links].map((link) => chip(link.replace("->", " → "), () => { links.delete(link); update(); })));
  }

  async function update() {
    show();
    result.hidden = !heads.size && !links.size;
    if (result.hidden) { result.replaceChildren(); return; }
    result.setAttribute("aria-busy", "true");
    try {
      const answer = await fetchCounterfactual(pane.run, pane.input, { ablate: [...heads], force: [...links] });
      result.replaceChildren(...beforeAfter(answer, pane.context()));
      announce(answer.original.text === answer.edited.text ? "The answer is unchanged" : `With the edit: ${answer.edited.text}`);
    } catch (error) {
      result.replaceChildren(make("p", { class: "bad", role: "alert" }, error.message));
    }
    result.setAttribute("aria-busy", "false");
  }

  function toggle(name) {
    if (!heads.delete(name)) heads.add(name);
    update();
  }

  return {
    node,
    toggle: (layer, head) => toggle(headName(layer, head)),
    force(target, source) { links.add(`${target}->${source}`); update(); },
    reset() {
      heads.clear();
      links.clear();
      node.hidden = !pane.run.has_attention || !pane.run.attentions.length;
      update();
    },
  };
}

// The answers as they are shown alone; words that differ are marked.
function beforeAfter({ original, edited }, context) {
  const isSame = JSON.stringify(original) === JSON.stringify(edited);
  const quiet = { ...context, select: () => {}, width: Math.max(240, context.width / (innerWidth > 860 ? 2 : 1) - 20) };
  const sides = [original, edited].map((prediction) => {
    const nodes = predictionNodes(prediction, quiet).filter(Boolean);
    nodes.forEach((node) => node.classList.remove("linked"));
    return nodes;
  });
  const texts = sides.map((nodes) => nodes.find((node) => node.matches?.("p.answer:not(.spans)")));
  if (texts[0] && texts[1] && !isSame) {
    const parts = compareWords(texts[0].textContent, texts[1].textContent);
    texts.forEach((node, index) => node.replaceChildren(...markedWords(parts[index])));
  }
  const verdict = isSame ? "unchanged" : original.text === edited.text ? "same answer, other numbers" : "changed";
  return [make("div", {}, make("h3", {}, "As it is"), ...sides[0]),
    make("div", {}, make("h3", {}, "With the edit ", make("span", { class: `badge ${isSame ? "" : "changed"}` }, verdict)), ...sides[1])];
}
