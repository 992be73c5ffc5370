// Lines from queries to the keys that they attend to: only weights above a threshold.

const LINKS_PER_ROW = 2; // at the first threshold, about this many
const MIN_FIRST_THRESHOLD = 0.1;

function firstThreshold(weights, rows) { // so that few lines are drawn
  const sorted = Float32Array.from(weights.filter((weight) => weight >= MIN_FIRST_THRESHOLD)).sort();
  const weight = sorted.length > LINKS_PER_ROW * rows ? sorted[sorted.length - LINKS_PER_ROW * rows] : MIN_FIRST_THRESHOLD;
  const threshold = sorted.length ? weight : maximum(weights) / 2; // weights of many keys may all be small
  return clamp(Math.round(100 * threshold) / 100, 0.01, 0.95);
}

function linkList(viewer, threshold) { // [query, key, weight], the weakest first
  const columns = labelsOf(viewer)[1].length;
  const links = [];
  viewer.weights.forEach((weight, n) => { if (weight >= threshold) links.push([Math.floor(n / columns), n % columns, weight]); });
  return links.sort((a, b) => a[2] - b[2]);
}

function drawLines(viewer, stage) {
  const board = buildLines(viewer, stage.clientWidth, viewer.stageHeight());
  stage.append(board.node);
  const highlight = () => emphasizeLinks(viewer, board);
  board.node.addEventListener("pointerover", (event) => {
    const { row, column } = event.target.closest("[data-row], [data-column]")?.dataset ?? {};
    if (row !== undefined) { viewer.point(Number(row), null); viewer.hovered = { row: Number(row) }; highlight(); }
    if (column !== undefined) { viewer.hovered = { column: Number(column) }; highlight(); viewer.announce(columnSentence(viewer, Number(column))); }
  });
  board.node.addEventListener("pointerleave", () => { viewer.hovered = null; highlight(); });
  board.node.addEventListener("click", (event) => {
    const target = event.target.closest("[data-row]");
    if (target) viewer.clickQuery(Number(target.dataset.row), target);
  });
  return { highlight: () => { viewer.hovered = { row: viewer.state.row }; highlight(); }, toSvg: () => linesSvg(viewer) };
}

function columnSentence(viewer, key) {
  const [rows, columns] = labelsOf(viewer);
  const list = rows.map((row, q) => [row, viewer.weights[q * columns.length + key]]).filter(([, weight]) => weight > 0.005);
  list.sort((a, b) => b[1] - a[1]);
  return `${quoted(columns[key])} is attended to by ${list.slice(0, 5).map(([row, weight]) => `${quoted(row)} ${percent(weight)}`).join(", ") || "nothing"}`;
}

function buildLines(viewer, width, height) {
  const { theme, state, weights } = viewer;
  const [rows, columns] = labelsOf(viewer);
  const threshold = state.threshold ?? firstThreshold(weights, rows.length);
  const count = Math.max(rows.length, columns.length);
  const step = clamp((height - 36) / count, 20, 36);
  const widest = (labels) => Math.min(170, width * 0.32, Math.max(...labels.map((text) => textWidth(text, 14)), 30));
  const numbers = 46; // room for a weight beside a label
  const [row, column] = nouns(viewer).map(capitalized);
  const [leftWidth, rightWidth] = [widest([...rows, row]) + 4, widest([...columns, column]) + 4];
  const middle = clamp(width - leftWidth - rightWidth - 2 * numbers - 8, 60, 520);
  const [x1, x2] = [leftWidth + numbers, leftWidth + numbers + middle];
  const offset = (labels) => 26 + (count - labels.length) * step / 2; // the shorter side is centered
  const y = [offset(rows), offset(columns)];
  const total = [x2 + rightWidth + numbers, 26 + count * step + 6];
  const node = svg("svg", { width: total[0], height: total[1], role: "img", "aria-label": leadSentence(viewer), class: "lines", "font-family": theme.font });
  svg("text", { x: x1 - 8, y: 14, "text-anchor": "end", "font-size": 12, fill: theme.faint }, node, row);
  svg("text", { x: x2 + 8, y: 14, "font-size": 12, fill: theme.faint }, node, column);
  const links = linkList(viewer, threshold);
  const paths = svg("g", { fill: "none" }, node);
  const curve = (q, k) => {
    const [from, to] = [y[0] + (q + 0.5) * step, y[1] + (k + 0.5) * step];
    return `M${x1},${from} C${x1 + middle * 0.45},${from} ${x2 - middle * 0.45},${to} ${x2},${to}`;
  };
  const lines = links.map(([q, k, weight]) => svg("path", { d: curve(q, k), stroke: theme.accent, "stroke-width": (0.75 + 4.5 * weight).toFixed(2), "stroke-opacity": (0.18 + 0.72 * weight).toFixed(2), "stroke-linecap": "round" }, paths));
  const text = (labels, x, top, attributes, name) => labels.map((token, n) => {
    const group = svg("g", { [`data-${name}`]: n }, node);
    const left = name === "row" ? 0 : x2;
    svg("rect", { x: left, y: top + n * step, width: name === "row" ? x1 : rightWidth + numbers, height: step, fill: "transparent" }, group);
    label(token, { x, y: top + (n + 0.5) * step + 5, fill: viewer.isFound(token) ? theme.mark : theme.ink, "text-decoration": viewer.isFound(token) ? "underline" : null, ...attributes, "font-size": 14 }, group, 170);
    const number = svg("text", { x: name === "row" ? 2 : x2 + rightWidth + numbers - 2, y: top + (n + 0.5) * step + 5, "font-size": 12, fill: theme.mark, "text-anchor": name === "row" ? "start" : "end", class: "number" }, group, "");
    return { group, number };
  });
  const left = text(rows, x1 - 8, y[0], { "text-anchor": "end" }, "row");
  const right = text(columns, x2 + 8, y[1], {}, "column");
  return { node, links, lines, left, right, threshold };
}

function emphasizeLinks(viewer, { links, lines, left, right }) { // those of the hovered word, with numbers
  const { theme, hovered, weights } = viewer;
  const columns = right.length;
  const isOn = ([q, k]) => !hovered || q === hovered.row || k === hovered.column;
  links.forEach((link, n) => {
    const isMarked = hovered && isOn(link);
    lines[n].setAttribute("stroke", isMarked ? theme.mark : theme.accent);
    lines[n].setAttribute("stroke-opacity", (hovered && !isMarked ? 0.06 : 0.18 + 0.72 * link[2]).toFixed(2));
  });
  const mark = (side, weightOf, own) => side.forEach(({ group, number }, n) => {
    const weight = weightOf(n);
    const isMarked = hovered && (n === own || weight >= 0.05);
    number.textContent = hovered && weight >= 0.01 && n !== own ? percent(weight).replace(/\.\d/, "") : "";
    group.setAttribute("opacity", hovered && !isMarked && weight < 0.01 ? 0.45 : 1);
    group.setAttribute("font-weight", isMarked ? 650 : 400);
  });
  mark(left, (q) => hovered?.column === undefined ? 0 : weights[q * columns + hovered.column], hovered?.row);
  mark(right, (k) => hovered?.row === undefined ? 0 : weights[hovered.row * columns + k], hovered?.column);
}

function thresholdSentence(viewer) {
  const threshold = viewer.state.threshold ?? firstThreshold(viewer.weights, labelsOf(viewer)[0].length);
  const links = linkList(viewer, threshold);
  const mass = viewer.weights.reduce((sum, weight) => sum + weight, 0);
  const shown = links.reduce((sum, [, , weight]) => sum + weight, 0);
  return [threshold, `${links.length} ${links.length === 1 ? "line" : "lines"} with ${percent(shown / Math.max(mass, 1e-9))} of the weight`];
}
