// All heads as small multiples, with the entropy and the role of each.

const MAX_THUMBNAIL_CELLS = 64; // a side; each cell is the maximum of its weights
const MAX_DRAWN_WEIGHTS = 1_000_000; // above this, only visible thumbnails are drawn

function thumbnailTable(data, layer, head) {
  const [rows, columns] = [data.queries.tokens.length, data.keys.tokens.length];
  const [height, width] = [Math.min(rows, MAX_THUMBNAIL_CELLS), Math.min(columns, MAX_THUMBNAIL_CELLS)];
  const table = new Float32Array(height * width);
  forEachWeight(data, layer, head, (row, key, weight) => {
    const cell = Math.floor(row * height / rows) * width + Math.floor(key * width / columns);
    table[cell] = Math.max(table[cell], weight);
  });
  return { table, width, height };
}

function drawThumbnail(viewer, canvas, layer, head) {
  const { table, width, height } = thumbnailTable(viewer.data, viewer.layers[layer], head);
  [canvas.width, canvas.height] = [width, height];
  const ink = canvas.getContext("2d");
  const image = ink.createImageData(width, height);
  table.forEach((weight, n) => image.data.set([...rampColor(viewer.theme, rampPosition(weight, viewer.data.top[0])), 255], 4 * n));
  ink.putImageData(image, 0, 0);
}

function drawThumbnails(viewer, canvases) { // a map may have hundreds of heads
  const { data } = viewer;
  const isMany = viewer.headCount * data.queries.tokens.length * data.kept > MAX_DRAWN_WEIGHTS;
  return drawWhenVisible(canvases, (canvas) => drawThumbnail(viewer, canvas, Number(canvas.dataset.layer), Number(canvas.dataset.head)), isMany);
}

function thumbnail(viewer, parent, layer, head, width) {
  const { data, state } = viewer;
  const [rows, columns] = [data.queries.tokens.length, data.keys.tokens.length];
  const isCurrent = state.layer === layer && state.head === head;
  const node = button(null, { class: "head", "aria-label": `${viewer.headNoun === "head" ? `${data.layers[layer].name}, ` : ""}${headWords(viewer, layer, head).join(" ")}`, "aria-current": isCurrent ? "true" : null }, parent, () => {
    viewer.change({ layer, head, view: state.view === "heads" ? viewer.firstView : state.view });
  });
  const canvas = element("canvas", { "data-layer": layer, "data-head": head }, node);
  canvas.style.cssText = `width:${width}px;height:${clamp(width * rows / columns, width / 3, width * 1.4)}px`;
  return { node, canvas };
}

function headWords(viewer, layer, head) { // as they stand below a thumbnail
  const { data } = viewer;
  const isClearest = data.clearest.layer === layer && data.clearest.head === head;
  return [viewer.headNoun === "head" ? `Head ${head + 1}` : data.layers[layer].name, ...headFacts(viewer, layer, head), ...(isClearest ? ["sharpest"] : [])];
}

function headFacts(viewer, layer, head) {
  const { entropy, roles } = viewer.data.layers[layer];
  const [role, share] = roles[head];
  const names = { previous: "prev.", same: "itself", next: "next", first: "first", last: "last", separator: "separator" };
  const facts = [`${entropy[head].toFixed(1)} bits`];
  if (role) facts.unshift(`${names[role]} ${Math.round(100 * share)} %`);
  if (viewer.data.gold) facts.push(`AER ${goldScores(viewer, layer, head).aer.toFixed(2)}`);
  return facts;
}

function drawOverview(viewer, stage) {
  const { data } = viewer;
  const maxHeads = Math.max(...data.layers.map((layer) => layer.heads));
  const isWide = stage.clientWidth > 700;
  const room = stage.clientWidth - (isWide ? 128 : 8);
  const perRow = Math.min(maxHeads, Math.max(2, Math.floor(room / 86)));
  const shape = data.keys.tokens.length / Math.max(1, data.queries.tokens.length);
  const fitHeight = (viewer.stageHeight() / data.layers.length - 64) * clamp(shape, 0.7, 3); // so that all layers are visible
  const width = Math.floor(clamp(Math.min(room / perRow - 15, Math.max(fitHeight, isWide ? 72 : 100)), 64, 240));
  const board = element("div", { class: isWide ? "overview wide" : "overview" }, stage);
  const canvases = [];
  data.layers.forEach((layer, index) => {
    element("p", { class: "heading" }, board, layer.name);
    const row = element("div", { class: "heads" }, board);
    row.style.gridTemplateColumns = `repeat(${Math.min(perRow, layer.heads)}, ${width + 8}px)`;
    range(layer.heads).forEach((head) => {
      const { node, canvas } = thumbnail(viewer, row, index, head, width);
      const caption = element("span", { class: "caption" }, node);
      headWords(viewer, index, head).forEach((text, n) => {
        element(n ? "span" : "b", { class: text === "sharpest" ? text : null }, caption, text);
        caption.append(" "); // so that a reader hears words
      });
      canvases.push(canvas);
    });
  });
  const notes = ["Bits: the mean entropy of a row; 0 is one place only."];
  if (data.kind === "self") notes.push("Percent: the share of weight on the previous, same, next, first or last token, or on separators, if it is 40 % or more.");
  if (data.gold) notes.push("AER: the alignment error rate against the gold links.");
  element("p", { class: "note" }, board, notes.join(" "));
  const observer = drawThumbnails(viewer, canvases);
  return { destroy: () => observer.disconnect(), toSvg: () => overviewSvg(viewer) };
}

function drawMiniature(viewer, parent) { // all heads beside the current one
  const { data } = viewer;
  const maxHeads = Math.max(...data.layers.map((layer) => layer.heads));
  const width = clamp(Math.floor(262 / maxHeads) - 6, 12, 60);
  const board = element("div", { class: "miniature" }, parent);
  const canvases = data.layers.flatMap((layer, index) => {
    const row = element("div", { class: "row" }, board);
    return range(layer.heads).map((head) => {
      const { node, canvas } = thumbnail(viewer, row, index, head, width);
      node.title = `${headName(viewer, index, head)}: ${headFacts(viewer, index, head).join(", ")}`;
      return canvas;
    });
  });
  return drawThumbnails(viewer, canvases);
}
