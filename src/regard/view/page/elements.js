// Elements of a page, and texts of labels. Tokens are only set as text.

const FONT_SIZE = 13; // pixels, of labels
const SVG_SPACE = "http://www.w3.org/2000/svg";
const ruler = document.createElement("canvas").getContext("2d");

function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    node.setAttribute(name, value === true ? "" : value);
  }
}

function element(name, attributes = {}, parent = null, text = null) {
  const node = document.createElement(name);
  setAttributes(node, attributes);
  if (text !== null) node.textContent = text;
  parent?.append(node);
  return node;
}

function svg(name, attributes = {}, parent = null, text = null) {
  const node = document.createElementNS(SVG_SPACE, name);
  setAttributes(node, attributes);
  if (text !== null) node.textContent = text;
  parent?.append(node);
  return node;
}

function button(text, attributes, parent, onClick) {
  const node = element("button", { type: "button", ...attributes }, parent, text);
  node.addEventListener("click", onClick);
  return node;
}

let family = "";
let rulerFont = "";

function textWidth(text, size = FONT_SIZE) {
  family ||= getComputedStyle(document.documentElement).getPropertyValue("--font").trim() || "sans-serif";
  const font = `${size}px ${family}`;
  if (font !== rulerFont) { ruler.font = font; rulerFont = font; } // setting it is slow
  return ruler.measureText(text).width;
}

function cutText(text, width, size = FONT_SIZE) { // at most `width` pixels
  if (!text) return "·";
  if (textWidth(text, size) <= width) return text;
  const letters = [...text];
  let low = 0;
  let high = letters.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (textWidth(`${letters.slice(0, middle).join("")}…`, size) <= width) low = middle; else high = middle - 1;
  }
  return `${letters.slice(0, Math.max(low, 1)).join("")}…`;
}

function label(text, attributes, parent, width = 160) {
  const node = svg("text", { "font-size": FONT_SIZE, ...attributes }, parent, cutText(text, width));
  svg("title", {}, node, text);
  return node;
}

const quoted = (token) => `“${token}”`;
const plainToken = (token) => token.replace(/^[▁Ġ]|^##/, ""); // without the mark of a tokenizer
const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function percent(weight) { // two digits that matter
  const value = 100 * weight;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  return `${value.toFixed(value < 9.95 && value > 0 ? 1 : 0)} %`;
}

function drawWhenVisible(nodes, draw, isMany) { // at once, unless there are many; returns what ends it
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      draw(target);
    }
  });
  nodes.forEach((node) => { if (isMany) observer.observe(node); else draw(node); });
  return observer;
}

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const range = (count) => Array.from({ length: count }, (_, n) => n);

function maximum(values) {
  let best = 0;
  for (const value of values) if (value > best) best = value;
  return best;
}
