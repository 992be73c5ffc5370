// A matrix of one head. Only visible cells are drawn, so that long inputs can be enlarged and scrolled.

const CELL = { min: 1, labeled: 15, maxWidth: 104, maxHeight: 46, gap: 12 }; // pixels

function matrixLayout(viewer, stage) {
  const [rows, columns] = labelsOf(viewer);
  const widest = (labels) => labels.reduce((most, text) => Math.max(most, textWidth(text)), 20);
  const width = Math.max(stage.clientWidth, 200);
  const height = viewer.stageHeight();
  const left = Math.ceil(Math.min(widest(rows) + 16, 190, width * 0.34));
  const widestColumn = Math.min(widest(columns), 150);
  const fitWidth = (width - left - 4) / columns.length;
  const usual = columns.map((text) => textWidth(text)).sort((a, b) => a - b)[Math.floor(0.85 * columns.length)]; // most are not wider
  const isFlat = usual + 6 <= Math.min(fitWidth, CELL.maxWidth) && widestColumn <= 1.6 * fitWidth;
  const angle = fitWidth < 22 ? 60 : 45; // degrees; lines of text must not overlap
  const top = isFlat ? 28 : Math.ceil(widestColumn * Math.sin(angle * Math.PI / 180) + 20);
  const pad = isFlat ? 8 : Math.ceil(widestColumn * Math.cos(angle * Math.PI / 180));
  const fit = [(width - left - pad - 2) / columns.length, (height - top - 4) / rows.length];
  const size = cellSize(fit, { zoom: viewer.state.zoom, isFlat, fitsWidth: viewer.data.kind === "memory" });
  return { rows, columns, left, top, pad, isFlat, angle, widestColumn, ...size };
}

function cellSize([fitWidth, fitHeight], { zoom, isFlat, fitsWidth }) { // fitsWidth: all slots of a memory are visible
  let [width, height] = [Math.min(fitWidth, CELL.maxWidth), Math.min(fitHeight, CELL.maxHeight)];
  const isLong = Math.min(width, height) < CELL.labeled / 3; // readable cells would fill more than three windows
  if (fitsWidth) [width, height] = [Math.max(3, width), Math.max(height, CELL.labeled)];
  else if (!isLong) [width, height] = [Math.max(width, CELL.labeled), Math.max(height, CELL.labeled)];
  else [width, height] = [Math.max(CELL.min, width), Math.max(CELL.min, height)];
  if (!isFlat) width = Math.min(width, 2.2 * height);
  height = Math.min(height, Math.max(1.6 * width, fitsWidth ? 26 : 0));
  const factor = zoom ?? 1;
  [width, height] = [width * factor, height * factor];
  return width >= 4 && height >= 4 ? { cellWidth: Math.floor(width), cellHeight: Math.floor(height) } : { cellWidth: width, cellHeight: height };
}

function drawMatrix(viewer, stage) {
  const layout = matrixLayout(viewer, stage);
  const { rows, columns, left, top, pad, cellWidth, cellHeight } = layout;
  const sizer = element("div", { class: "sizer" }, stage);
  sizer.style.width = `${left + columns.length * cellWidth + pad}px`;
  sizer.style.height = `${top + rows.length * cellHeight + 2}px`;
  const layer = element("div", { class: "layer" }, sizer);
  const canvas = element("canvas", { role: "img", "aria-label": `${rows.length} rows, ${columns.length} columns. ${leadSentence(viewer)}` }, layer);
  const overlay = svg("svg", { class: "labels", "aria-hidden": "true" }, layer);
  const paint = () => paintMatrix(viewer, stage, { layout, layer, canvas, overlay });
  let frame = 0;
  const schedule = () => { cancelAnimationFrame(frame); frame = requestAnimationFrame(paint); };
  stage.onscroll = schedule;
  const cellAt = (event) => {
    const box = layer.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left + stage.scrollLeft - left) / cellWidth);
    const row = Math.floor((event.clientY - box.top + stage.scrollTop - top) / cellHeight);
    const isInside = event.clientY - box.top > top && row >= 0 && row < rows.length;
    return isInside ? [row, event.clientX - box.left > left && column >= 0 && column < columns.length ? column : null] : [null, null];
  };
  layer.addEventListener("pointermove", (event) => {
    const [row, key] = cellAt(event);
    if (row !== null) viewer.point(row, key);
  });
  layer.addEventListener("click", (event) => {
    const [row, key] = cellAt(event);
    if (row !== null && key === null) viewer.clickQuery(row, layer.querySelector(`[data-row="${row}"]`) ?? layer);
  });
  paint();
  return { highlight: schedule, reveal: (row, key) => revealCell(stage, layout, row, key), toSvg: () => matrixSvg(viewer) };
}

function revealCell(stage, { left, top, cellWidth, cellHeight }, row, key) { // scroll so that the cell is visible
  const y = row * cellHeight;
  if (y < stage.scrollTop || y + cellHeight > stage.scrollTop + stage.clientHeight - top) stage.scrollTop = y - (stage.clientHeight - top) / 2;
  if (key === null) return;
  const x = key * cellWidth;
  if (x < stage.scrollLeft || x + cellWidth > stage.scrollLeft + stage.clientWidth - left) stage.scrollLeft = x - (stage.clientWidth - left) / 2;
}

function visibleRange(offset, size, cell, count) {
  return [clamp(Math.floor(offset / cell), 0, count), clamp(Math.ceil((offset + size) / cell), 0, count)];
}

function paintMatrix(viewer, stage, { layout, layer, canvas, overlay }) {
  const { rows, columns, left, top, cellWidth, cellHeight } = layout;
  const [width, height] = [stage.clientWidth, Math.min(stage.clientHeight, top + rows.length * cellHeight + 2)];
  layer.style.width = `${width}px`;
  layer.style.height = `${height}px`;
  setAttributes(overlay, { width, height });
  const shown = {
    rows: visibleRange(stage.scrollTop, height - top, cellHeight, rows.length),
    columns: visibleRange(stage.scrollLeft, width - left, cellWidth, columns.length),
  };
  const at = {
    x: (k) => Math.round(left + k * cellWidth - stage.scrollLeft),
    y: (q) => Math.round(top + q * cellHeight - stage.scrollTop),
  };
  paintCells(viewer, canvas, { layout, width, height, shown, at });
  overlay.replaceChildren();
  paintLabels(viewer, overlay, { layout, shown, at, height });
}

function paintCells(viewer, canvas, { layout, width, height, shown, at }) {
  const { columns, left, top, cellWidth, cellHeight } = layout;
  const { theme, weights, state } = viewer;
  const [ratio, scale] = [devicePixelRatio || 1, scaleTop(viewer)];
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  canvas.style.cssText = `width:${width}px;height:${height}px`;
  const ink = canvas.getContext("2d");
  ink.scale(ratio, ratio);
  ink.beginPath();
  ink.rect(left, top, width - left, height - top);
  ink.clip();
  const gap = cellWidth >= CELL.gap && cellHeight >= CELL.gap ? 1 : 0;
  const zero = weightColor(theme, 0, 1);
  ink.fillStyle = zero;
  if (!gap) ink.fillRect(at.x(shown.columns[0]), at.y(shown.rows[0]), at.x(shown.columns[1]) - at.x(shown.columns[0]), at.y(shown.rows[1]) - at.y(shown.rows[0]));
  for (let q = shown.rows[0]; q < shown.rows[1]; q++) {
    for (let k = shown.columns[0]; k < shown.columns[1]; k++) {
      const weight = weights[q * columns.length + k];
      if (!gap && weight < 0.0005) continue;
      ink.fillStyle = weight < 0.0005 ? zero : weightColor(theme, weight, scale);
      ink.fillRect(at.x(k), at.y(q), Math.max(1, at.x(k + 1) - at.x(k) - gap), Math.max(1, at.y(q + 1) - at.y(q) - gap));
    }
  }
  if (cellWidth >= (viewer.data.gold ? 56 : 30) && cellHeight >= 16) paintNumbers(viewer, ink, { layout, shown, at, scale });
  ink.strokeStyle = theme.mark;
  ink.lineWidth = cellHeight < 6 ? 1 : 2;
  ink.strokeRect(at.x(0) + 0.5, at.y(state.row) + 0.5, columns.length * cellWidth - 1 - gap, Math.max(2, cellHeight - 1 - gap));
}

function paintNumbers(viewer, ink, { layout, shown, at, scale }) { // of the selected row
  const { columns, cellWidth, cellHeight } = layout;
  const { theme, weights, state } = viewer;
  ink.font = `12px ${theme.font}`;
  ink.textAlign = "center";
  ink.textBaseline = "middle";
  for (let k = shown.columns[0]; k < shown.columns[1]; k++) {
    const weight = weights[state.row * columns.length + k];
    if (weight < 0.005) continue;
    ink.fillStyle = inkOn(theme, weight, scale);
    ink.fillText(String(Math.round(100 * weight)), at.x(k) + cellWidth / 2, at.y(state.row) + cellHeight / 2);
  }
}

function paintLabels(viewer, overlay, { layout, shown, at, height }) {
  const { rows, columns, left, top, isFlat, angle, widestColumn, cellWidth, cellHeight } = layout;
  const { theme, state, weights } = viewer;
  const step = (size) => Math.max(1, Math.ceil(CELL.labeled / size));
  const strong = new Set(strongestKeys(weights, columns.length, state.row, 3).filter(([, weight]) => weight >= 0.1).map(([key]) => key));
  if (state.key !== null) strong.add(state.key);
  const look = (text, isActive) => ({
    fill: isActive || viewer.isFound(text) ? theme.mark : theme.ink, "font-weight": isActive ? 650 : 400,
    "text-decoration": viewer.isFound(text) ? "underline" : null,
  });
  const rowStep = step(cellHeight);
  for (let q = shown.rows[0]; q < shown.rows[1]; q++) {
    const y = at.y(q) + cellHeight / 2;
    const isActive = q === state.row;
    if (y < top || y > height || (!isActive && (q % rowStep || Math.abs(q - state.row) * cellHeight < CELL.labeled && rowStep > 1))) continue;
    label(rows[q], { x: left - 8, y: y + 4.5, "text-anchor": "end", "data-row": q, ...look(rows[q], isActive) }, overlay, left - 12);
  }
  const columnStep = step(cellWidth);
  const isNear = (k) => columnStep > 1 && [...strong].some((other) => other !== k && Math.abs(other - k) * cellWidth < CELL.labeled);
  for (let k = shown.columns[0]; k < shown.columns[1]; k++) {
    const x = at.x(k) + cellWidth / 2;
    const isActive = strong.has(k);
    if (x < left || (!isActive && (k % columnStep || isNear(k)))) continue;
    const place = isFlat ? { x, y: top - 10, "text-anchor": "middle" } : { x: x + 4, y: top - 8, transform: `rotate(-${angle} ${x + 4} ${top - 8})` };
    label(columns[k], { ...place, "data-column": k, ...look(columns[k], isActive) }, overlay, widestColumn + 2);
  }
  if (viewer.data.gold) paintGold(viewer, overlay, { layout, shown, at });
}
