// Sentences about the current view: what is shown, why, and how much.

const isSpecial = (token) => /^<[^<>]+>$|^\[[A-Z]+\]$/.test(token);

function isCharacters(tokens) {
  const plain = tokens.filter((token) => !isSpecial(token));
  return plain.length > 3 && plain.every((token) => [...token].length <= 1);
}

function nouns(viewer) { // of a row and of a column
  const { data } = viewer;
  const unit = (side) => viewer.state.words && hasWords(data) ? "word" : pieceName(data, side);
  const [query, key] = [unit(data.queries), unit(data.keys)];
  if (data.kind === "memory") return ["step", "memory slot"];
  if (data.kind === "pool") return ["row", key];
  if (data.kind === "self") return [query, key];
  return / to /.test(data.layers[viewer.state.layer].name) ? [query, key] : [`output ${query}`, `input ${key}`];
}

// Rows that are no words: chords, labeled examples, actions with rewards, numbered residues.
function isPositions(tokens) {
  const plain = tokens.filter((token) => !isSpecial(token) && !/^\(.*\)$/.test(token));
  return plain.some((token) => /\S\s+\S/.test(token)) || (plain.length > 0 && plain.every((token, n) => /^[A-Z.]\d+$/.test(token) && token.endsWith(`${n + 1}`) || /^\d+:\S+$/.test(token)));
}

function pieceName(data, side) { // of a token
  if (isPositions(side.tokens)) return "position";
  if (isCharacters(side.labels.map((text) => text.replace(/^·/, "")))) return "character";
  return hasWords(data) ? "subword" : "word";
}

const article = (noun) => /^[aeiou]/.test(noun) ? "an" : "a";

function headName(viewer, layer = viewer.state.layer, head = viewer.state.head) {
  const { name, heads } = viewer.data.layers[layer];
  if (heads === 1) return name;
  return typeof head === "number" ? `${name}, head ${head + 1}` : `${name}, ${head === "mean" ? "mean" : "maximum"} of ${heads} heads`;
}

function leadSentence(viewer) {
  const { data, state, theme } = viewer;
  const stronger = theme.isDark ? "brighter" : "darker";
  const [row, column] = nouns(viewer);
  const name = capitalized(headName(viewer));
  if (state.view === "heads") return `All ${viewer.headNoun}s: one small matrix each, ${stronger} where ${article(row)} ${row} attends more. Select one to enlarge it.`;
  if (state.view === "search") return "The search: each column is a step, with the likeliest hypothesis on top. The output is bold.";
  if (viewer.isPicture && data.layers_are_words) return `While it writes ${quoted(data.layers[state.layer].name)}, the model attends to the clear regions of the picture.`;
  if (viewer.isPicture) return `${name}: the clear regions of the picture are those that ${data.reader} attends to.`;
  if (state.view === "lines") return `${name}: each line leads from ${article(row)} ${row} to ${article(column)} ${column} that it attends to; wider lines are larger weights.`;
  if (state.view === "text" && data.kind === "pool") return `${name}: ${stronger} ${column}s have more weight.`;
  if (state.view === "text") return `${name}: select ${article(row)} ${row}; ${stronger} ${column}s are those that it attends to more.`;
  if (data.kind === "memory") return `${name}: each row is a step; ${stronger} cells are memory slots that it uses more.`;
  if (data.kind === "pool") return `${name}: ${stronger} cells are ${column}s with more weight.`;
  const target = row === column ? `the ${column}s` : `${column}s`;
  return `${name}: each row is ${article(row)} ${row}; ${stronger} cells are ${target} that it attends to more.`;
}

function openingReason(viewer) {
  const { data, state } = viewer;
  const { layer, head, bits } = data.clearest;
  const count = data.layers.reduce((sum, { heads }) => sum + heads, 0);
  if (count < 2 || state.layer !== layer || state.head !== head || ["heads", "search"].includes(state.view)) return "";
  const amount = `${bits.toFixed(2)} bits above an even pattern`;
  if (data.layers_are_words) return `Opened on the word with the sharpest look of ${count} (${amount}).`;
  return `Opened on the sharpest of ${count} ${viewer.headNoun}s: its rows attend to few ${viewer.isPicture ? "regions" : "places, and each to its own"} (${amount}).`;
}

function statisticsSentence(viewer) {
  const { data, weights } = viewer;
  const [rows, columns] = labelsOf(viewer);
  if (viewer.isPicture) {
    const mass = weights.reduce((sum, weight) => sum + weight, 0);
    const bits = rowEntropy(weights.map((weight) => weight / Math.max(mass, 1e-9)));
    const rest = data.reader ? ` ${capitalized(data.reader)} keeps ${percent(Math.max(0, 1 - mass))} for itself.` : "";
    return `Entropy ${bits.toFixed(2)} of at most ${Math.log2(weights.length).toFixed(2)} bits.${rest}`;
  }
  let distance = 0;
  let mass = 0;
  weights.forEach((weight, n) => {
    if (!weight) return;
    mass += weight;
    distance += weight * Math.abs(Math.floor(n / columns.length) - (n % columns.length));
  });
  const bits = rowEntropy(weights) / Math.max(1, rows.length);
  const far = data.kind === "self" ? ` Mean distance ${(distance / Math.max(mass, 1e-9)).toFixed(1)}.` : "";
  const note = data.dropped > 0.0005 ? ` Of each row, the ${data.kept} largest weights are shown, without ${percent(data.dropped)} of the weight.` : "";
  return `Entropy ${bits.toFixed(2)} of at most ${Math.log2(Math.max(1, columns.length)).toFixed(2)} bits per row.${far}${note}`;
}

const keyName = ({ data }, text) => data.kind === "memory" ? `slot ${text}` : text || "·";

function rowSentence(viewer) { // the selected row, or the selected cell
  const { state, weights, data } = viewer;
  const [rows, columns] = labelsOf(viewer);
  if (!rows.length || !columns.length) return "";
  if (viewer.isPicture) return regionSentence(viewer);
  const name = (key) => data.kind === "memory" ? keyName(viewer, columns[key]) : quoted(columns[key]);
  const verb = data.kind === "memory" ? "uses" : "attends to";
  if (state.key !== null && data.kind === "pool") return `${capitalized(rows[state.row])}: ${name(state.key)} ${percent(weights[state.row * columns.length + state.key])}`;
  if (state.key !== null) return `${quoted(rows[state.row])} ${verb} ${name(state.key)}: ${percent(weights[state.row * columns.length + state.key])}`;
  const best = strongestKeys(weights, columns.length, state.row, 5);
  const list = best.map(([key, weight]) => `${name(key)} ${percent(weight)}`).join(", ");
  return data.kind === "pool" ? `${capitalized(rows[state.row])}: ${list || "nothing"}` : `${quoted(rows[state.row])} ${verb} ${list || "nothing"}`;
}

function regionSentence(viewer) {
  const { data, state, weights } = viewer;
  const columns = data.keys.tokens.length;
  const place = (cell) => `${data.queries.tokens[Math.floor(cell / columns)]}, ${data.keys.tokens[cell % columns]}`;
  if (state.cell !== null) return `${capitalized(place(state.cell))}: ${percent(weights[state.cell])}`;
  const best = weights.reduce((a, weight, n) => weight > weights[a] ? n : a, 0);
  const reader = data.layers_are_words ? quoted(data.layers[state.layer].name) : capitalized(data.reader);
  return `${reader} attends most to ${place(best)}: ${percent(weights[best])}`;
}
