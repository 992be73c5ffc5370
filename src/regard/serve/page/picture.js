// Copy or save a part of the page as a picture: its elements with their styles, inside an SVG.

const PICTURE_SCALE = 2;
const PICTURE_GAP = 24; // pixels around and between the parts
const MAX_PICTURE_WIDTH = 1600;
const PICTURE_STYLES = [ // what a picture keeps of the style of an element
  "align-items", "align-self", "background", "border", "border-bottom", "border-collapse", "border-radius", "border-top",
  "box-shadow", "box-sizing", "clip-path", "color", "column-gap", "cx", "cy", "display", "fill", "fill-opacity", "flex", "flex-direction",
  "flex-wrap", "float", "font", "font-variant-numeric", "gap", "grid-area", "grid-column", "grid-template-columns", "grid-template-rows",
  "height", "image-rendering", "justify-content", "left", "letter-spacing", "line-height", "list-style", "margin", "max-height",
  "max-width", "min-height", "min-width", "mix-blend-mode", "opacity", "overflow", "padding", "place-items", "position", "r", "right",
  "rx", "stroke", "stroke-dasharray", "stroke-opacity", "stroke-width", "text-align", "text-anchor", "text-decoration", "text-overflow",
  "top", "transform", "vertical-align", "visibility", "white-space", "width", "word-spacing", "writing-mode", "x", "y", "z-index",
];

function inlineStyles(source, copy) {
  const style = getComputedStyle(source);
  const isCanvas = source instanceof HTMLCanvasElement && source.width > 0;
  const target = isCanvas ? make("img", { src: source.toDataURL("image/png") }) : copy;
  target.style.cssText = PICTURE_STYLES.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";");
  if (isCanvas) { copy.replaceWith(target); return; }
  if (source instanceof HTMLSelectElement) copy.options[source.selectedIndex]?.setAttribute("selected", "");
  if (source instanceof HTMLInputElement) copy.setAttribute("value", source.value);
  const children = [...copy.children];
  [...source.children].forEach((child, index) => inlineStyles(child, children[index]));
}

// The parts stand side by side if they fit, else below each other.
async function pictureBlob(parts) {
  const shown = parts.filter((part) => part.offsetWidth), boxes = shown.map((part) => part.getBoundingClientRect());
  const total = boxes.reduce((sum, box) => sum + box.width + PICTURE_GAP, PICTURE_GAP), isRow = total <= MAX_PICTURE_WIDTH;
  const widths = boxes.map((box) => box.width), heights = boxes.map((box) => box.height);
  const width = Math.ceil(isRow ? total : Math.max(...widths) + 2 * PICTURE_GAP);
  const height = Math.ceil(2 * PICTURE_GAP + (isRow ? Math.max(...heights) : heights.reduce((sum, value) => sum + value + PICTURE_GAP, 0)));
  const copies = shown.map((part) => {
    const copy = part.cloneNode(true);
    inlineStyles(part, copy);
    copy.style.margin = "0";
    copy.querySelectorAll("[data-no-picture], .sr").forEach((extra) => extra.remove());
    return copy;
  });
  const sheet = make("div", { xmlns: "http://www.w3.org/1999/xhtml", style: `display:flex;flex-direction:${isRow ? "row" : "column"};`
    + `align-items:flex-start;gap:${PICTURE_GAP}px;padding:${PICTURE_GAP}px;width:${width}px;height:${height}px;box-sizing:border-box;`
    + `background:${getComputedStyle(document.body).backgroundColor}` }, ...copies);
  const markup = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><foreignObject width="100%" height="100%">`
    + `${new XMLSerializer().serializeToString(sheet)}</foreignObject></svg>`;
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(markup)}`;
  await image.decode();
  const canvas = make("canvas", { width: PICTURE_SCALE * width, height: PICTURE_SCALE * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) =>
    (blob ? resolve(blob) : reject(new Error("this browser cannot make the picture"))), "image/png"));
}

async function copyPicture(parts) {
  const item = new ClipboardItem({ "image/png": pictureBlob(parts) });
  await navigator.clipboard.write([item]);
  announce("The picture is on the clipboard");
}

async function savePicture(parts, name) {
  const address = URL.createObjectURL(await pictureBlob(parts));
  make("a", { href: address, download: `${name}.png` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
