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

// Rows that are no words, by what all of their names look like.
const POSITIONS = [
  ["example", (name) => /^\S+: \d+$/.test(name)],
  ["step", (name) => /^\d+:\S+( \d+)?$/.test(name)],
  ["residue", (name, n) => name === `${name[0]}${n + 1}` && /^[A-Z]/.test(name)],
  ["point", (name, n) => name === `${n + 1}`],
  ["chord", (name) => /^[A-G]#?-?\d+( [A-G]#?-?\d+)*$/.test(name)],
  ["position", (name) => /^\S+ \S/.test(name)],
];

function positionName(tokens) { // undefined: words, or pieces of words
  const names = tokens.filter((token) => !isSpecial(token) && !/^\(.*\)$/.test(token));
  return names.length > 0 ? POSITIONS.find(([, matches]) => names.every(matches))?.[0] : undefined;
}

function pieceName(data, side) { // of a token
  const position = positionName(side.tokens);
  if (position) return position;
  if (isCharacters(side.labels.map((text) => text.replace(/^·/, "")))) return "character";
  return hasWords(data) ? "subword" : "word";
}

const article = (noun) => /^[aeiou]/.test(noun) ? "an" : "a";

function headName(viewer, layer = viewer.state.layer, head = viewer.state.head) {
  const { name, heads } = viewer.data.layers[layer];
  if (heads === 1) return name;
  return typeof head === "number" ? `${name}, head ${head + 1}` : `${name}, ${head === "mean" ? "mean" : "maximum"} of ${heads} heads`;
}

const ROLE_SHARE = 0.4; // of the attention, that makes a place the usual one
const PLACES = [ // of a key, seen from its query
  [(noun) => `the ${noun} before it`, (q, k) => k === q - 1],
  [() => "itself", (q, k) => k === q],
  [(noun) => `the ${noun} after it`, (q, k) => k === q + 1],
  [(noun) => `the first ${noun}`, (_, k) => k === 0],
  [(noun) => `the last ${noun}`, (_, k, count) => k === count - 1],
];

function leadSentence(viewer) { // what is shown, and what it means
  const { data, state, theme } = viewer;
  const stronger = theme.isDark ? "brighter" : "darker";
  const [row] = nouns(viewer);
  if (state.view === "heads") return `All ${viewer.headNoun}s: one small matrix each, ${stronger} where ${article(row)} ${row} attends more. Select one to enlarge it.`;
  if (state.view === "search") return "The search: each column is a step, with the likeliest hypothesis on top. The output is bold.";
  const finding = viewer.isPicture ? regionsFinding(viewer) : data.kind === "pool" ? poolFinding(viewer) : rowsFinding(viewer);
  const name = headName(viewer);
  return data.layers_are_words || name === "Attention" ? capitalized(finding) : `${capitalized(name)}: ${finding}`;
}

function regionsFinding({ data, state, weights }) { // how many regions get half of the weight
  const half = weights.reduce((sum, weight) => sum + weight, 0) / 2;
  let [sum, count] = [0, 0];
  for (const weight of [...weights].sort((a, b) => b - a)) {
    if (sum >= half) break;
    sum += weight;
    count += 1;
  }
  const subject = data.layers_are_words ? `while it writes ${quoted(data.layers[state.layer].name)}, the model` : data.reader;
  const few = count <= weights.length / 4 ? "mostly at" : "at many regions:";
  return `${subject} looks ${few} ${count} of ${weights.length} regions, which ${count === 1 ? "gets" : "get"} half of its attention.`;
}

function poolFinding(viewer) {
  const { weights } = viewer;
  const [rows, columns] = labelsOf(viewer);
  const [, noun] = nouns(viewer);
  if (rows.length > 1) return `${viewer.theme.isDark ? "brighter" : "darker"} ${noun}s have more weight.`;
  const [[first, most] = [0, 0], [second, next] = [0, 0]] = strongestKeys(weights, columns.length, 0, 2);
  if (most < 2 * evenWeight(viewer)) return `no ${noun} stands out; ${quoted(columns[first])} has the most weight, ${percent(most)}.`;
  const then = next >= 1.5 * evenWeight(viewer) ? `, then ${quoted(columns[second])} with ${percent(next)}` : "";
  return `${quoted(columns[first])} has the most weight, ${percent(most)}${then}.`;
}

function rowsFinding(viewer) { // where most rows have their weight
  const { data } = viewer;
  const [row, column] = nouns(viewer);
  const [verb, goods] = data.kind === "memory" ? ["uses", "weight"] : ["looks at", "attention"];
  const { peak, places, column: [key, share] } = rowShares(viewer);
  const [rows, columns] = labelsOf(viewer);
  const best = data.kind === "self" ? places.indexOf(Math.max(...places)) : -1;
  const mostly = verb.replace(/^(\w+)/, "$1 mostly");
  if (places[best] >= ROLE_SHARE) return `each ${row} ${mostly} ${PLACES[best][0](column)}, with ${percent(places[best])} of its ${goods} on average.`;
  if (rows.length > 2 && share >= ROLE_SHARE) return `each ${row} ${mostly} ${data.kind === "memory" ? keyName(viewer, columns[key]) : quoted(columns[key])}, with ${percent(share)} of its ${goods} on average.`;
  if (peak >= 0.5) return `each ${row} ${mostly} one ${column}, with ${percent(peak)} of its ${goods} on average.`;
  if (peak >= Math.max(0.15, 2 * evenWeight(viewer))) return `each ${row} ${verb} several ${column}s; the strongest of them gets ${percent(peak)} of its ${goods} on average.`;
  return `the ${goods} of each ${row} is spread over many ${column}s; none stands out.`;
}

function rowShares(viewer) { // means over rows: the greatest share, those of PLACES, and the column with most [key, share]
  const { weights } = viewer;
  const [rows, columns] = labelsOf(viewer);
  const [places, shares] = [PLACES.map(() => 0), columns.map(() => 0)];
  let [peak, used] = [0, 0];
  rows.forEach((_, q) => {
    const row = weights.subarray(q * columns.length, (q + 1) * columns.length);
    const mass = row.reduce((sum, weight) => sum + weight, 0);
    if (!mass) return;
    used += 1;
    peak += maximum(row) / mass;
    row.forEach((weight, k) => {
      if (!weight) return;
      shares[k] += weight / mass;
      PLACES.forEach(([, holds], n) => { if (holds(q, k, columns.length)) places[n] += weight / mass; });
    });
  });
  const count = Math.max(1, used);
  const most = maximum(shares);
  return { peak: peak / count, places: places.map((share) => share / count), column: [shares.indexOf(most), most / count] };
}

function readingSentence(viewer) { // how to read the view
  const { data, state, theme } = viewer;
  if (["heads", "search"].includes(state.view)) return "";
  const stronger = theme.isDark ? "brighter" : "darker";
  const [row, column] = nouns(viewer);
  const target = row === column ? `the ${column}s` : `${column}s`;
  if (viewer.isPicture) return "Clear regions get more attention than gray ones.";
  if (state.view === "lines") return `Each line leads from ${article(row)} ${row} to ${article(column)} ${column} that it looks at; wider lines are larger weights.`;
  if (data.kind === "pool") return `${capitalized(stronger)} ${column}s have more weight.`;
  if (state.view === "text") return `Select ${article(row)} ${row}: ${stronger} ${column}s get more of its attention.`;
  if (data.kind === "memory") return `Each row is a step; ${stronger} cells are memory slots that it uses more.`;
  return `Each row is ${article(row)} ${row}; ${stronger} cells are ${target} that it looks at more.`;
}

function openingReason({ data, state, headCount, headNoun, isPicture }) {
  const { layer, head } = data.clearest;
  if (headCount < 2 || state.layer !== layer || state.head !== head || ["heads", "search"].includes(state.view)) return "";
  if (data.layers_are_words) return `The page opens on the word with the sharpest look of ${headCount}.`;
  return `The page opens on the sharpest of ${headCount} ${headNoun}s: ${isPicture ? "it looks at few regions" : "its rows look at few places, and each at its own"}.`;
}

function statisticsSentence(viewer) {
  const { data, weights } = viewer;
  const [rows, columns] = labelsOf(viewer);
  if (viewer.isPicture) {
    const mass = weights.reduce((sum, weight) => sum + weight, 0);
    const bits = rowEntropy(weights.map((weight) => weight / Math.max(mass, 1e-9)));
    const rest = data.reader ? ` ${capitalized(data.reader)} keeps ${percent(Math.max(0, 1 - mass))} for itself.` : "";
    return `${spreadSentence("It", bits, weights.length, "region")}${rest}`;
  }
  let distance = 0;
  let mass = 0;
  weights.forEach((weight, n) => {
    if (!weight) return;
    mass += weight;
    distance += weight * Math.abs(Math.floor(n / columns.length) - (n % columns.length));
  });
  const bits = rowEntropy(weights) / Math.max(1, rows.length);
  const [, column] = nouns(viewer);
  const far = data.kind === "self" ? ` Mean distance: ${(distance / Math.max(mass, 1e-9)).toFixed(1)} ${column}s.` : "";
  const note = data.dropped > 0.0005 ? ` Of each row, the ${data.kept} largest weights are shown, without ${percent(data.dropped)} of the weight.` : "";
  return `${spreadSentence(rows.length > 1 ? "A row" : "It", bits, columns.length, column)}${far}${note}`;
}

// An entropy as the number of equal weights that have it.
const spreadSentence = (subject, bits, count, noun) => `${subject} spreads over about ${(2 ** bits).toFixed(1)} of ${count} ${noun}s (entropy ${bits.toFixed(2)} of at most ${Math.log2(Math.max(1, count)).toFixed(2)} bits).`;

const keyName = ({ data }, text) => data.kind === "memory" ? `slot ${text}` : text || "·";

const MIN_NAMED_WEIGHT = 0.01; // of a key in a sentence, unless it is the first

function rowSentence(viewer) { // the selected row, or the selected cell
  const { state, weights, data } = viewer;
  const [rows, columns] = labelsOf(viewer);
  if (!rows.length || !columns.length) return "";
  if (viewer.isPicture) return regionSentence(viewer);
  const name = (key) => data.kind === "memory" ? keyName(viewer, columns[key]) : quoted(columns[key]);
  const verb = data.kind === "memory" ? `at step ${state.row + 1} uses` : "attends to";
  const plain = capitalized(rows[state.row].replace(/^\((.*)\)$/, "$1"));
  if (state.key !== null && data.kind === "pool") return `${plain}: ${name(state.key)} ${percent(weights[state.row * columns.length + state.key])}`;
  if (state.key !== null) return `${quoted(rows[state.row])} ${verb} ${name(state.key)}: ${percent(weights[state.row * columns.length + state.key])}`;
  const best = strongestKeys(weights, columns.length, state.row, 5).filter(([, weight], n) => n === 0 || weight >= MIN_NAMED_WEIGHT);
  const list = best.map(([key, weight]) => `${name(key)} ${percent(weight)}`).join(", ");
  return data.kind === "pool" ? `${plain}: ${list || "nothing"}` : `${quoted(rows[state.row])} ${verb} ${list || "nothing"}`;
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
