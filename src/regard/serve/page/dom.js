// Elements, numbers and words that all parts of the page share. Text of inputs and answers is only
// set as text, never as markup.

const $ = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") node.style.cssText = value;
    else if (name.startsWith("aria-") && typeof value === "boolean") node.setAttribute(name, String(value));
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const make = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const button = (label, onclick, attributes = {}) =>
  make("button", { type: "button", onclick, ...attributes }, label);

const percent = (share) => (share > 0 && share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`);

const readable = (name) => name.replaceAll("_", " ").replaceAll(".", " ");

function number(value) {
  if (Number.isInteger(value)) return value.toLocaleString("en");
  if (value > 0 && value < 0.001) return "< 0.001";
  return String(Number(value.toPrecision(3)));
}

// Say on a button that its work is done, for a moment.
function confirmOn(node, text) {
  const label = node.dataset.label ?? node.textContent;
  Object.assign(node.dataset, { label });
  node.textContent = text;
  setTimeout(() => { node.textContent = label; }, 1600);
}

// Say a text to a screen reader.
function announce(text) { $("live").textContent = text; }

// A list of names gets colors that are the same for the same name.
const labelColors = new Map();
function labelColor(name) {
  if (!labelColors.has(name)) labelColors.set(name, labelColors.size % 8);
  return `var(--hue-${labelColors.get(name)})`;
}

// One bar of a list: a name, a share between 0 and 1, and its value as text.
function barRow(name, share, { text = percent(share), isBest = false, onclick = null } = {}) {
  const label = onclick ? button(name, onclick, { class: "plain" }) : make("span", {}, name);
  return make("div", { class: `bar${isBest ? " best" : ""}` },
    make("div", { class: "bar-name", title: name }, label),
    make("div", { class: "bar-track", "aria-hidden": "true" },
      make("i", { style: `width:${Math.max(0.4, 100 * Math.min(1, share))}%` })),
    make("span", { class: "bar-value" }, text));
}

// A slider over steps with buttons, for results that unfold in time. Pointing at an element of `picture`
// with `data-query` goes to that step.
function stepSlider(count, onstep, { picture, label = "Step", start = count - 1, delay = 700 }) {
  let timer = null;
  const range = make("input", { type: "range", min: 0, max: count - 1, value: start, "aria-label": label });
  const text = make("output", { class: "faint" });
  const show = (step) => {
    range.value = step;
    text.textContent = `${label} ${Number(step) + 1} of ${count}`;
    onstep(Number(step));
  };
  const stop = () => { clearInterval(timer); timer = null; play.textContent = "Play"; };
  const advance = () => {
    if (!play.isConnected || Number(range.value) >= count - 1) stop();
    else show(Number(range.value) + 1);
  };
  const play = button("Play", () => {
    if (timer) { stop(); return; }
    if (Number(range.value) >= count - 1) show(0);
    play.textContent = "Pause";
    timer = setInterval(advance, delay);
  });
  range.addEventListener("input", () => { stop(); show(range.value); });
  picture.addEventListener("pointerover", ({ target }) => {
    if (target.dataset.query === undefined) return;
    stop();
    show(target.dataset.query);
  });
  show(start);
  return make("div", { class: "row slider" }, play, range, text);
}

// Words of two texts: [kind, words] with kind "same", "gone" or "new".
function compareWords(before, after) {
  const [a, b] = [before.split(/(\s+)/), after.split(/(\s+)/)];
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const [left, right] = [[], []];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      left.push(["same", a[i++]]);
      right.push(["same", b[j++]]);
    } else if (j >= b.length || (i < a.length && table[i + 1][j] >= table[i][j + 1])) left.push(["gone", a[i++]]);
    else right.push(["new", b[j++]]);
  }
  return [left, right];
}

const markedWords = (parts) => parts.map(([kind, text]) =>
  kind === "same" || !text.trim() ? document.createTextNode(text)
    : make(kind === "gone" ? "del" : "ins", {}, text));
