// A picture as input: chosen, dropped, pasted or drawn.

const PAD_SIDE = 224; // pixels of the drawing pad, along the longer side
const BRUSHES = ["#ffffff", "#000000", "#d62728", "#1f77b4", "#2ca02c", "#ffbf00"];
const CURSOR_STEP = 8; // pixels that an arrow key moves the brush

function createImageField(field, id) {
  let source = "";
  const preview = make("img", { alt: "The chosen picture", hidden: true });
  const pad = createPad(field, () => { source = pad.picture(); });
  const show = (url) => {
    source = url;
    preview.hidden = !url || !pad.node.hidden;
    if (url) preview.src = url;
    else preview.removeAttribute("src");
  };
  const read = (file) => {
    if (!file?.type.startsWith("image/")) return;
    const reader = new FileReader();
    reader.onload = () => { setDrawing(false); show(reader.result); };
    reader.readAsDataURL(file);
  };
  const chooser = make("input", { id, type: "file", accept: "image/*", class: "sr",
    onchange: () => read(chooser.files[0]) });
  const drawButton = button("Draw", () => setDrawing(pad.node.hidden), { "aria-pressed": "false" });
  function setDrawing(isDrawing) {
    pad.node.hidden = !isDrawing;
    drawButton.setAttribute("aria-pressed", isDrawing);
    preview.hidden = isDrawing || !source;
    if (isDrawing) { source = pad.picture(); pad.focus(); }
  }
  const hint = make("span", { class: "faint" }, "or drop or paste one here");
  const node = make("div", { class: "drop", ondragover: (event) => event.preventDefault(),
    ondrop: (event) => { event.preventDefault(); read(event.dataTransfer.files[0]); } },
    make("div", { class: "row" }, chooser,
      make("label", { for: id, class: "button" }, `Choose ${field.label.toLowerCase()}`),
      field.size ? drawButton : null, hint),
    preview, pad.node);
  document.addEventListener("paste", (event) => {
    if (node.isConnected && event.clipboardData.files.length) read(event.clipboardData.files[0]);
  });
  return { node, read: () => source, write: (url) => { setDrawing(false); show(url ?? ""); },
    focus: () => chooser.focus() };
}

function createPad(field, onchange) {
  const [height, width, channels] = field.size ?? [1, 1, 3];
  const scale = PAD_SIDE / Math.max(height, width);
  const canvas = make("canvas", { width: Math.round(width * scale), height: Math.round(height * scale),
    tabindex: 0, class: "pad", role: "img",
    "aria-label": "Drawing pad: arrow keys move the brush, the space bar paints" });
  const pen = canvas.getContext("2d");
  const brush = { color: channels === 1 ? BRUSHES[0] : BRUSHES[2], radius: Math.max(4, 1.1 * scale) };
  const cursor = { x: canvas.width / 2, y: canvas.height / 2 };
  let last = null;
  const blank = () => {
    pen.fillStyle = channels === 1 ? "#000" : "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
  };
  const paint = (x, y) => {
    pen.strokeStyle = brush.color;
    pen.lineWidth = 2 * brush.radius;
    pen.lineCap = pen.lineJoin = "round";
    pen.beginPath();
    pen.moveTo(...(last ?? [x, y]));
    pen.lineTo(x, y);
    pen.stroke();
    last = [x, y];
    onchange();
  };
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [((event.clientX - box.left) * canvas.width) / box.width, ((event.clientY - box.top) * canvas.height) / box.height];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = null;
    paint(...place(event));
  });
  canvas.addEventListener("pointermove", (event) => { if (event.buttons) paint(...place(event)); });
  canvas.addEventListener("keydown", (event) => {
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
    const isArrow = dx || dy;
    if (!isArrow && event.key !== " ") return;
    event.preventDefault();
    cursor.x = Math.min(canvas.width, Math.max(0, cursor.x + dx * CURSOR_STEP));
    cursor.y = Math.min(canvas.height, Math.max(0, cursor.y + dy * CURSOR_STEP));
    if (event.key === " ") last = null;
    if (event.key === " " || event.shiftKey) paint(cursor.x, cursor.y);
  });
  const colors = channels === 1 ? BRUSHES.slice(0, 2) : BRUSHES;
  const names = ["White", "Black", "Red", "Blue", "Green", "Yellow"];
  const swatches = colors.map((color, index) => button("", () => choose(color), {
    class: "swatch", style: `background:${color}`, "aria-label": `${names[index]} brush` }));
  function choose(color) {
    brush.color = color;
    swatches.forEach((swatch, index) => swatch.setAttribute("aria-pressed", colors[index] === color));
  }
  choose(brush.color);
  const size = make("input", { type: "range", min: 2, max: 24, value: brush.radius, "aria-label": "Size of the brush",
    oninput: () => { brush.radius = Number(size.value); } });
  const node = make("div", { class: "pad-box", hidden: true }, canvas,
    make("div", { class: "row" }, ...swatches, size, button("Clear", () => { blank(); onchange(); })));
  blank();
  return { node, picture: () => canvas.toDataURL("image/png"), focus: () => canvas.focus() };
}
