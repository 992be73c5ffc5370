// The weights of a map: layers of heads with sparse rows, by subwords or by words.

async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function readLayers(data) { // [{name, heads, entropy, roles, indices, values}]
  const bytes = await inflate(data.packed);
  const queries = data.queries.tokens.length;
  let offset = 0;
  return data.layers.map((layer) => {
    const count = layer.heads * queries * data.kept;
    const indices = new Uint16Array(bytes.slice(offset, offset + 2 * count).buffer);
    const values = bytes.slice(offset + 2 * count, offset + 3 * count);
    offset += 3 * count;
    return { ...layer, indices, values };
  });
}

function forEachWeight(data, layer, head, visit) { // visit(query, key, weight), by subwords
  const rows = data.queries.tokens.length;
  for (let row = 0; row < rows; row++) {
    const start = (head * rows + row) * data.kept;
    for (let n = start; n < start + data.kept; n++) {
      if (layer.values[n]) visit(row, layer.indices[n], (layer.values[n] / 255) ** 2); // stored as a square root
    }
  }
}

function denseWeights(data, layer, head) { // Float32Array [queries x keys], by subwords
  const columns = data.keys.tokens.length;
  const table = new Float32Array(data.queries.tokens.length * columns);
  const heads = head === "mean" || head === "max" ? range(layer.heads) : [head];
  for (const index of heads) {
    forEachWeight(data, layer, index, (row, key, weight) => {
      const cell = row * columns + key;
      table[cell] = head === "max" ? Math.max(table[cell], weight) : table[cell] + weight / heads.length;
    });
  }
  return table;
}

function mergeWords(data, subwordWeights) { // a row is the mean of its subwords, a column their sum
  const [queryWords, keyWords] = [data.queries.word, data.keys.word];
  const columns = data.keys.words.length;
  const table = new Float32Array(data.queries.words.length * columns);
  const lengths = new Float32Array(data.queries.words.length);
  for (const word of queryWords) lengths[word] += 1;
  for (let q = 0; q < queryWords.length; q++) {
    for (let k = 0; k < keyWords.length; k++) {
      const weight = subwordWeights[q * keyWords.length + k];
      if (weight) table[queryWords[q] * columns + keyWords[k]] += weight / lengths[queryWords[q]];
    }
  }
  return table;
}

const hasWords = ({ queries, keys }) => queries.words.length < queries.tokens.length || keys.words.length < keys.tokens.length;
const startsWithWords = (data) => hasWords(data) && !isCharacters(data.queries.labels.map((text) => text.replace(/^·/, "")));
const showsWords = (viewer) => viewer.state.words || !hasWords(viewer.data);

function labelsOf(viewer) { // of rows and of columns
  const { queries, keys } = viewer.data;
  return showsWords(viewer) ? [queries.words, keys.words] : [queries.labels, keys.labels];
}

function currentWeights(viewer) {
  const { data, state, layers } = viewer;
  const table = denseWeights(data, layers[state.layer], state.head);
  return showsWords(viewer) ? mergeWords(data, table) : table;
}

function strongestKeys(weights, columns, row, count) { // [key, weight], the greatest first
  const order = [];
  for (let k = 0; k < columns; k++) if (weights[row * columns + k] > 0.0005) order.push([k, weights[row * columns + k]]);
  return order.sort((a, b) => b[1] - a[1]).slice(0, count);
}

function evenWeight(viewer) { // of a row, over the keys that it may attend to
  if (viewer.isPicture) return 1 / viewer.weights.length;
  const [rows, columns] = labelsOf(viewer);
  if (viewer.data.kind !== "pool") return 1 / Math.max(1, columns.length);
  const used = viewer.weights.reduce((sum, weight) => sum + (weight > 0), 0); // a sentence has weights for its own words
  return Math.max(1, rows.length) / Math.max(1, used);
}
const scaleTop = (viewer) => viewer.data.top[showsWords(viewer) ? 1 : 0];

function rowEntropy(weights) { // bits
  let bits = 0;
  for (const weight of weights) if (weight > 0) bits -= weight * Math.log2(weight);
  return bits;
}
