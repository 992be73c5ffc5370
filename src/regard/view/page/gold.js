// Gold links: frames in the matrix, and how well the strongest links of a head agree with them.

const goldPairs = ({ data }, kind) => new Set(data.gold[kind].map((pair) => pair.join(" ")));

function strongestLinks(viewer, layer, head) { // "query key" of the greatest weight, among words that can have links
  const { data } = viewer;
  if (!data.gold.keys.length) return [];
  const table = mergeWords(data, denseWeights(data, viewer.layers[layer], head));
  const columns = data.keys.words.length;
  const best = (query) => data.gold.keys.reduce((a, b) => table[query * columns + b] > table[query * columns + a] ? b : a);
  return data.gold.queries.map((query) => [query, best(query)]).filter(([query, key]) => table[query * columns + key] > 0).map((pair) => pair.join(" "));
}

function goldScores(viewer, layer, head) {
  const [sure, possible] = [goldPairs(viewer, "sure"), goldPairs(viewer, "possible")];
  const predicted = strongestLinks(viewer, layer, head);
  const hits = predicted.filter((pair) => sure.has(pair)).length;
  const correct = hits + predicted.filter((pair) => possible.has(pair)).length;
  const aer = 1 - (hits + correct) / Math.max(1, predicted.length + sure.size);
  return { aer, correct, wrong: predicted.length - correct, missed: sure.size - hits };
}

function goldSentence(viewer) {
  if (!viewer.data.gold) return "";
  const { aer, correct, wrong, missed } = goldScores(viewer, viewer.state.layer, viewer.state.head);
  return `Gold links are framed (dashed: possible). The strongest link of each word: ${correct} found (●), ${wrong} false (✕), ${missed} missed; AER ${aer.toFixed(3)}.`;
}

function paintGold(viewer, overlay, { layout, shown, at }) {
  const { data, state, theme, weights } = viewer;
  const { columns, left, top, cellWidth, cellHeight } = layout;
  if (cellWidth < 8 || cellHeight < 8) return;
  const [sure, possible] = [goldPairs(viewer, "sure"), goldPairs(viewer, "possible")];
  const predicted = new Set(strongestLinks(viewer, state.layer, state.head));
  const word = (side, n) => showsWords(viewer) ? n : side.word[n];
  for (let q = shown.rows[0]; q < shown.rows[1]; q++) {
    for (let k = shown.columns[0]; k < shown.columns[1]; k++) {
      const pair = `${word(data.queries, q)} ${word(data.keys, k)}`;
      const isGold = sure.has(pair) || possible.has(pair);
      if ((!isGold && !predicted.has(pair)) || at.x(k) < left - 1 || at.y(q) < top - 1) continue;
      const frame = { x: at.x(k) + 1, y: at.y(q) + 1, width: cellWidth - 3, height: cellHeight - 3, fill: "none", stroke: theme.mark, "stroke-width": 2, rx: 1, class: "gold" };
      if (isGold) svg("rect", { ...frame, "stroke-dasharray": sure.has(pair) ? null : "4 3" }, overlay);
      if (!predicted.has(pair)) continue;
      const weight = weights[q * columns.length + k];
      const place = cellWidth >= 36 ? { x: at.x(k) + cellWidth - 12, y: at.y(q) + 15 } : { x: at.x(k) + cellWidth / 2, y: at.y(q) + cellHeight / 2 + 4 };
      const look = { "text-anchor": "middle", "font-size": 12, fill: inkOn(theme, weight, scaleTop(viewer)), class: "link" };
      svg("text", { ...place, ...look }, overlay, isGold ? "●" : "✕");
    }
  }
}
