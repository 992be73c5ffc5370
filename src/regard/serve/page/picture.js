// Copy or save a part of the page as a picture: its elements with their styles, inside an SVG.

const PICTURE_SCALE = 2;
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
  const children = [...copy.children];
  [...source.children].forEach((child, index) => inlineStyles(child, children[index]));
}

async function pictureBlob(node) {
  const box = node.getBoundingClientRect(), copy = node.cloneNode(true);
  inlineStyles(node, copy);
  copy.style.margin = "0";
  copy.style.background = getComputedStyle(document.body).backgroundColor;
  copy.querySelectorAll("[data-no-picture], .sr").forEach((part) => part.remove());
  copy.setAttribute("xmlns", "http://www.w3.org/1999/xhtml");
  const [width, height] = [Math.ceil(box.width), Math.ceil(box.height)];
  const markup = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><foreignObject width="100%" height="100%">`
    + `${new XMLSerializer().serializeToString(copy)}</foreignObject></svg>`;
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(markup)}`;
  await image.decode();
  const canvas = make("canvas", { width: PICTURE_SCALE * width, height: PICTURE_SCALE * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) =>
    (blob ? resolve(blob) : reject(new Error("this browser cannot make the picture"))), "image/png"));
}

async function copyPicture(node) {
  const item = new ClipboardItem({ "image/png": pictureBlob(node) });
  await navigator.clipboard.write([item]);
  announce("The picture is on the clipboard");
}

async function savePicture(node, name) {
  const address = URL.createObjectURL(await pictureBlob(node));
  make("a", { href: address, download: `${name}.png` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
