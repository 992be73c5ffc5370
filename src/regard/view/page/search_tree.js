// The tree of a beam search: a column for each step, the likeliest hypothesis on top.

function treeLayout(tree) {
  const depth = [];
  tree.forEach(([parent], n) => { depth[n] = parent < 0 ? 0 : depth[parent] + 1; });
  const columns = range(Math.max(...depth) + 1).map(() => []);
  tree.forEach((_, n) => columns[depth[n]].push(n));
  columns.forEach((nodes) => nodes.sort((a, b) => tree[b][2] - tree[a][2]));
  const place = [];
  columns.forEach((nodes, x) => nodes.forEach((n, y) => { place[n] = [x, y]; }));
  return { columns, place };
}

function buildTree(viewer) {
  const { theme, data } = viewer;
  const { columns, place } = treeLayout(data.tree);
  const [columnWidth, rowHeight, top] = [112, 30, 34];
  const rows = Math.max(...columns.map((nodes) => nodes.length));
  const board = svg("svg", { width: 24 + columns.length * columnWidth, height: top + rows * rowHeight + 8, role: "img", "aria-label": leadSentence(viewer), "font-family": theme.font });
  const at = (n) => [12 + place[n][0] * columnWidth, top + (place[n][1] + 0.5) * rowHeight];
  columns.forEach((_, x) => svg("text", { x: 12 + x * columnWidth, y: 16, "font-size": 12, fill: theme.faint }, board, `Step ${x + 1}`));
  data.tree.forEach(([parent, , , isBest], n) => {
    if (parent < 0) return;
    const [[x1, y1], [x2, y2]] = [at(parent), at(n)];
    const from = x1 + Math.min(84, textWidth(cutText(plainToken(data.tree[parent][1]) || "␣", 84))) + 5;
    svg("path", { d: `M${from},${y1} C${x2 - 30},${y1} ${from + 12},${y2} ${x2 - 5},${y2}`, fill: "none", stroke: isBest ? theme.mark : theme.faint, "stroke-opacity": isBest ? 1 : 0.55, "stroke-width": isBest ? 2.5 : 1 }, board);
  });
  data.tree.forEach(([, token, logProb, isBest], n) => {
    const [x, y] = at(n);
    const text = plainToken(token) || "␣";
    const node = svg("text", { x, y: y + 4.5, "font-size": 13, "font-weight": isBest ? 650 : 400, fill: isBest ? theme.mark : theme.ink }, board, cutText(text, 84));
    svg("title", {}, node, `${text}: log p ${logProb.toFixed(2)}`);
  });
  return board;
}

function drawSearchTree(viewer, stage) {
  const board = buildTree(viewer);
  stage.append(board);
  return { toSvg: () => ({ board: buildTree(viewer), hasScale: false }) };
}
