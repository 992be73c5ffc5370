// Weights over a picture: gray covers regions with little weight. Captions have a small picture for each word.

const MAX_COVER = 0.74;
const COVER = [128, 134, 143]; // a gray that differs from dark and from light pictures
const MIN_OUTLINE_SHARE = 0.5; // regions with at least this share of the greatest weight are outlined

function loadPicture(viewer) { // the picture, or a plain ground
  if (viewer.picture) return Promise.resolve(viewer.picture);
  const image = new Image();
  image.alt = "The image, as the model reads it";
  if (viewer.data.image) image.src = `data:image/png;base64,${viewer.data.image}`;
  else return Promise.resolve(viewer.picture = { node: null, width: viewer.data.keys.tokens.length, height: viewer.data.queries.tokens.length });
  return image.decode().then(() => { viewer.picture = { node: image, width: image.naturalWidth, height: image.naturalHeight }; return viewer.picture; })
    .catch(() => { viewer.picture = { node: null, width: viewer.data.keys.tokens.length, height: viewer.data.queries.tokens.length }; return viewer.picture; });
}

function gridSize({ data, picture }) { // regions, and the pixels of the picture that they cover
  const [rows, columns] = [data.queries.tokens.length, data.keys.tokens.length];
  const covered = (pixels, count) => pixels >= count ? Math.floor(pixels / count) * count : pixels;
  return { rows, columns, width: covered(picture.width, columns), height: covered(picture.height, rows) };
}

const cover = (weight, top) => MAX_COVER * (1 - rampPosition(weight, top));

function paintPicture(viewer, canvas, weights, width) { // width: pixels of the page
  const { picture, theme, state } = viewer;
  const grid = gridSize(viewer);
  const height = width * grid.height / grid.width;
  const ratio = devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  canvas.style.cssText = `width:${width}px;height:${height}px`;
  const ink = canvas.getContext("2d");
  const isSmall = grid.width < 128;
  ink.imageSmoothingEnabled = !isSmall;
  ink.fillStyle = theme.isDark ? "#d8dce2" : "#eef0f2";
  ink.fillRect(0, 0, canvas.width, canvas.height);
  if (picture.node) ink.drawImage(picture.node, 0, 0, grid.width, grid.height, 0, 0, canvas.width, canvas.height);
  const mask = document.createElement("canvas");
  [mask.width, mask.height] = [grid.columns, grid.rows];
  const pixels = mask.getContext("2d").createImageData(grid.columns, grid.rows);
  weights.forEach((weight, n) => pixels.data.set([...COVER, Math.round(255 * state.dim * cover(weight, scaleTop(viewer)))], 4 * n));
  mask.getContext("2d").putImageData(pixels, 0, 0);
  ink.imageSmoothingEnabled = state.smooth ?? !isSmall;
  ink.drawImage(mask, 0, 0, canvas.width, canvas.height);
  return height;
}

function outlineRegions(viewer, weights, width, height) { // edges between regions inside and outside the outline
  const { rows, columns } = gridSize(viewer);
  const least = Math.max(MIN_OUTLINE_SHARE * maximum(weights), 2 / weights.length); // nothing, if weights are nearly equal
  const isIn = (row, column) => row >= 0 && column >= 0 && row < rows && column < columns && weights[row * columns + column] >= least;
  const [dx, dy] = [width / columns, height / rows];
  let path = "";
  range(rows * columns).forEach((n) => {
    const [row, column] = [Math.floor(n / columns), n % columns];
    if (!isIn(row, column)) return;
    const [x, y] = [column * dx, row * dy];
    if (!isIn(row - 1, column)) path += `M${x},${y}h${dx}`;
    if (!isIn(row + 1, column)) path += `M${x},${y + dy}h${dx}`;
    if (!isIn(row, column - 1)) path += `M${x},${y}v${dy}`;
    if (!isIn(row, column + 1)) path += `M${x + dx},${y}v${dy}`;
  });
  const board = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "outline", "aria-hidden": "true" });
  const line = { d: path, fill: "none", "stroke-linecap": "square" }; // white with a dark border, for any picture
  if (path) svg("path", { ...line, stroke: "#000", "stroke-opacity": 0.6, "stroke-width": 5 }, board);
  if (path) svg("path", { ...line, stroke: "#fff", "stroke-width": 2 }, board);
  return board;
}

function drawPicture(viewer, stage) {
  const board = element("div", { class: stage.clientWidth > 700 ? "picture wide" : "picture" }, stage);
  const { data, state } = viewer;
  const grid = gridSize(viewer);
  const hasStrip = data.layers_are_words && data.layers.length > 1;
  const isWide = stage.clientWidth > 700;
  const room = viewer.stageHeight() - (hasStrip && !isWide ? 142 : 8);
  const most = (stage.clientWidth - 4) * (hasStrip && isWide ? 0.62 : 1);
  const width = Math.floor(Math.max(140, Math.min(most, Math.max(room, 200) * grid.width / grid.height)));
  const frame = element("div", { class: "large" }, board);
  const canvas = element("canvas", { role: "img", "aria-label": leadSentence(viewer) }, frame);
  const box = element("div", { class: "region", hidden: true }, frame);
  const height = paintPicture(viewer, canvas, viewer.weights, width);
  frame.append(outlineRegions(viewer, viewer.weights, width, height));
  const cellAt = (event) => {
    const [x, y] = [Math.floor(event.offsetX / width * grid.columns), Math.floor(event.offsetY / height * grid.rows)];
    return clamp(y, 0, grid.rows - 1) * grid.columns + clamp(x, 0, grid.columns - 1);
  };
  canvas.addEventListener("pointermove", (event) => { state.cell = cellAt(event); highlight(); viewer.announce(rowSentence(viewer)); });
  canvas.addEventListener("pointerleave", () => { state.cell = null; highlight(); viewer.announce(rowSentence(viewer)); });
  const highlight = () => {
    box.hidden = state.cell === null;
    if (state.cell === null) return;
    const [row, column] = [Math.floor(state.cell / grid.columns), state.cell % grid.columns];
    box.style.cssText = `left:${column * width / grid.columns}px;top:${row * height / grid.rows}px;width:${width / grid.columns}px;height:${height / grid.rows}px`;
  };
  const beside = element("div", { class: "beside" }, board);
  const strip = hasStrip ? drawStrip(viewer, beside, grid, isWide ? 112 : 84) : null;
  drawChoices(viewer, beside);
  return { highlight, destroy: () => strip?.disconnect(), toSvg: () => pictureSvg(viewer) };
}

function drawStrip(viewer, board, grid, size) { // small multiples, a word each
  const { data, state, layers } = viewer;
  const strip = element("div", { class: "strip", role: "group", "aria-label": "Words of the caption" }, board);
  const width = Math.round(Math.min(size, size * grid.width / grid.height));
  data.layers.forEach(({ name }, layer) => {
    const isCurrent = layer === state.layer;
    const node = button(null, { class: "frame", "aria-pressed": String(isCurrent), "aria-label": `Word ${layer + 1}: ${name}` }, strip, () => {
      viewer.change({ layer });
      viewer.clickQuery(layer, viewer.parts.view.querySelectorAll(".strip .frame")[layer]);
      viewer.parts.view.querySelectorAll(".strip .frame")[layer]?.focus();
    });
    const canvas = element("canvas", { "data-layer": layer }, node);
    canvas.style.cssText = `width:${width}px;height:${width * grid.height / grid.width}px`;
    element("span", {}, node, name || "·");
  });
  const current = strip.children[state.layer];
  if (current) strip.scrollLeft = current.offsetLeft - strip.clientWidth / 2 + current.clientWidth / 2;
  const paint = (canvas) => paintPicture(viewer, canvas, denseWeights(data, layers[Number(canvas.dataset.layer)], 0), width);
  return drawWhenVisible([...strip.querySelectorAll("canvas")], paint, data.layers.length > 40);
}
