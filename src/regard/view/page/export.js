// Save the current view as SVG or PNG, with its title, labels and scale.

const MAX_EXPORT_CELLS = 40000; // a larger matrix is saved as pixels

function matrixSvg(viewer) {
  const { theme, weights } = viewer;
  const [rows, columns] = labelsOf(viewer);
  const widest = (labels) => Math.min(180, Math.max(...labels.map((text) => textWidth(text)), 20));
  const isLong = rows.length * columns.length > MAX_EXPORT_CELLS;
  const size = isLong ? Math.max(2, Math.floor(1600 / columns.length)) : clamp(Math.floor(900 / columns.length), 16, 44);
  const height = Math.min(size, 30);
  const [left, top] = isLong ? [0, 0] : [widest(rows) + 12, widest(columns) * 0.72 + 18];
  const board = svg("svg", { width: left + columns.length * size + widest(columns) * 0.72, height: top + rows.length * height });
  const scale = scaleTop(viewer);
  const cells = svg("g", {}, board);
  weights.forEach((weight, n) => {
    if (isLong && weight < 0.0005) return;
    const [x, y] = [left + (n % columns.length) * size, top + Math.floor(n / columns.length) * height];
    svg("rect", { x, y, width: size - (isLong ? 0 : 1), height: height - (isLong ? 0 : 1), fill: weightColor(theme, weight, scale) }, cells);
  });
  if (isLong) svg("rect", { width: columns.length * size, height: rows.length * height, fill: "none", stroke: theme.line }, board);
  else {
    rows.forEach((token, q) => svg("text", { x: left - 8, y: top + (q + 0.5) * height + 4.5, "text-anchor": "end", "font-size": FONT_SIZE, fill: theme.ink }, board, cutText(token, 180)));
    columns.forEach((token, k) => {
      const x = left + (k + 0.5) * size + 4;
      svg("text", { x, y: top - 8, "font-size": FONT_SIZE, fill: theme.ink, transform: `rotate(-45 ${x} ${top - 8})` }, board, cutText(token, 180));
    });
    if (viewer.data.gold) {
      const at = { x: (k) => left + k * size, y: (q) => top + q * height };
      paintGold(viewer, board, { layout: { columns, left, top, cellWidth: size, cellHeight: height }, shown: { rows: [0, rows.length], columns: [0, columns.length] }, at });
    }
  }
  return { board, hasScale: true };
}

function linesSvg(viewer) {
  return { board: buildLines(viewer, 900, 600).node, hasScale: false };
}

function overviewSvg(viewer) {
  const { data, theme } = viewer;
  const maxHeads = Math.max(...data.layers.map((layer) => layer.heads));
  const [side, pitch] = [110, [126, 150]];
  const left = Math.max(...data.layers.map(({ name }) => textWidth(name))) + 16;
  const board = svg("svg", { width: left + maxHeads * pitch[0], height: data.layers.length * pitch[1] });
  data.layers.forEach((layer, index) => {
    svg("text", { x: left - 12, y: index * pitch[1] + side / 2, "text-anchor": "end", "font-size": FONT_SIZE, fill: theme.ink }, board, layer.name);
    range(layer.heads).forEach((head) => {
      const [x, y] = [left + head * pitch[0], index * pitch[1]];
      const canvas = document.createElement("canvas");
      drawThumbnail(viewer, canvas, index, head);
      svg("image", { x, y, width: side, height: side, preserveAspectRatio: "none", style: "image-rendering:pixelated", href: canvas.toDataURL() }, board);
      svg("text", { x, y: y + side + 16, "font-size": 12, fill: theme.faint }, board, `${head + 1}: ${headFacts(viewer, index, head)[0]}`);
    });
  });
  return { board, hasScale: true };
}

function pictureSvg(viewer) {
  const { data, layers, theme, state } = viewer;
  const grid = gridSize(viewer);
  const words = data.layers_are_words ? range(data.layers.length) : [state.layer];
  const width = words.length > 1 ? 200 : 480;
  const height = width * grid.height / grid.width;
  const perRow = Math.min(words.length, 5);
  const board = svg("svg", { width: perRow * (width + 16), height: Math.ceil(words.length / perRow) * (height + 34) });
  words.forEach((layer, n) => {
    const [x, y] = [(n % perRow) * (width + 16), Math.floor(n / perRow) * (height + 34)];
    const canvas = document.createElement("canvas");
    paintPicture(viewer, canvas, words.length > 1 ? denseWeights(data, layers[layer], 0) : viewer.weights, width);
    svg("image", { x, y, width, height, href: canvas.toDataURL() }, board);
    if (data.layers_are_words) svg("text", { x, y: y + height + 18, "font-size": 14, fill: theme.ink }, board, data.layers[layer].name);
  });
  return { board, hasScale: true };
}

function pictureSentence(viewer) { // of a saved picture, which has all words of a caption
  const { data } = viewer;
  if (!viewer.isPicture || !data.layers_are_words) return leadSentence(viewer);
  return "The clear regions are those that the model attends to while it writes the word below them.";
}

function pictureScale(viewer) { // options of drawScale for dimmed pictures
  const mix = (position, n) => Math.round(255 - (255 - COVER[n]) * MAX_COVER * viewer.state.dim * (1 - position));
  const color = (position) => css([0, 1, 2].map((n) => mix(position, n)));
  return viewer.isPicture ? { colors: color, title: "Weight" } : {};
}

function pageSvg(viewer) { // the view between its title and its scale
  const { board, hasScale } = viewer.drawing.toSvg();
  const { theme, data } = viewer;
  const size = ["width", "height"].map((name) => Math.ceil(Number(board.getAttribute(name))));
  const width = Math.max(size[0] + 48, 800);
  const height = size[1] + 134 + (hasScale ? 64 : 0);
  const page = svg("svg", { xmlns: SVG_SPACE, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": theme.font.replaceAll('"', "'") });
  svg("rect", { width, height, fill: theme.ground }, page);
  svg("text", { x: 24, y: 36, "font-size": 18, "font-weight": 600, fill: theme.ink }, page, cutText(data.title || "Attention", (width - 48) * 0.92, 18));
  svg("text", { x: 24, y: 60, "font-size": 13, fill: theme.faint }, page, cutText(pictureSentence(viewer), width - 48, 13));
  svg("text", { x: 24, y: 79, "font-size": 13, fill: theme.faint }, page, cutText(readingSentence(viewer), width - 48, 13));
  const group = svg("g", { transform: "translate(24 102)" }, page);
  group.append(...board.childNodes);
  if (hasScale) drawScale(page, { theme, top: scaleTop(viewer), even: evenWeight(viewer), x: 24, y: size[1] + 126, ...pictureScale(viewer) });
  page.querySelectorAll("title").forEach((node) => node.remove());
  return { text: new XMLSerializer().serializeToString(page), width, height };
}

function toPng({ text, width, height }) { // at twice the size, within the limits of a canvas
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => {
      const factor = Math.min(2, 8192 / Math.max(width, height));
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [Math.round(width * factor), Math.round(height * factor)];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(resolve, "image/png");
    };
    image.onerror = reject;
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  });
}

async function savePicture(viewer, kind) {
  const page = pageSvg(viewer);
  const blob = kind === "svg" ? new Blob([page.text], { type: "image/svg+xml" }) : await toPng(page);
  const link = element("a", { href: URL.createObjectURL(blob), download: `attention.${kind}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
