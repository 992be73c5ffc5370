// Words of an answer: hover shows what they attend to, a click offers alternatives. Any element of an
// answer with `data-query`, the index of a row of the map, selects its row (see pane.js).

const MAX_SKIPPED_CHARACTERS = 40; // between two tokens of an output in its text
const END = "</s>"; // the token that ends an output
const isSpecial = (token) => /^(<[^<>]+>|\[[A-Z]+\])$/.test(token);
const withoutMark = (token) => token.replace(/^[▁Ġ ]+/u, "").replace(/^##/, "");

// The tokens of the output of a map: {name, query, choices}. In a map of a text over itself, a query
// writes the token after it; in maps of an image, each layer is a token.
function outputTokens(data) {
  const choices = data.choices ?? [], start = data.output_start ?? 0;
  if (data.kind === "grid") {
    if (!choices.length) return [];
    return data.layers.map(({ name }, n) => ({ name: name.replace(/^\d+ /, ""), query: n, choices: choices[n] ?? [] }));
  }
  const { tokens } = data.queries, isSelf = data.kind === "self" && choices.length > 0;
  const first = isSelf ? start + 1 : start;
  const output = tokens.slice(first).map((name, n) => ({ name, query: first + n, choices: choices[isSelf ? first + n - 1 : first + n] ?? [] }));
  if (isSelf) output.push({ name: END, query: tokens.length - 1, choices: choices.at(-1) });
  return output;
}

// Places of tokens in a text: [{index, start, end}]; a token that is not near is left out.
function locateTokens(text, tokens, position = 0) {
  const places = [], lower = text.toLowerCase();
  tokens.forEach(({ name }, index) => {
    const plain = withoutMark(name).toLowerCase();
    const start = plain ? lower.indexOf(plain, position) : -1;
    if (start < 0 || start - position > MAX_SKIPPED_CHARACTERS) return;
    position = start + plain.length;
    places.push({ index, start, end: position });
  });
  return places;
}

// Replace a text by words that can be hovered and clicked; `onclick` gets the index of an output token.
function linkWords(node, data, onclick) {
  const text = node.textContent, tokens = outputTokens(data);
  const places = locateTokens(text, tokens, Number(node.dataset.given ?? 0));
  const wordNode = (word, index, attributes = {}) => make("span", { class: "word", role: "button", tabindex: -1, "data-query": tokens[index].query,
    "aria-haspopup": tokens[index].choices.length ? "menu" : null,
    onclick: (event) => onclick(index, event.currentTarget), ...attributes }, word);
  const children = [];
  let end = 0;
  for (const { index, start, end: stop } of places) {
    children.push(text.slice(end, start), wordNode(text.slice(start, stop), index));
    end = stop;
  }
  const last = tokens.length - 1;
  const isEnded = tokens[last]?.choices.length && isSpecial(tokens[last].name);
  if (!children.length && !isEnded) return;
  children.push(text.slice(end));
  if (isEnded) children.push(" ", wordNode("∎", last, { class: "word stop", "aria-label": "end of the output", title: "End of the output" }));
  node.replaceChildren(...children);
  moveByArrows([...node.querySelectorAll(".word")]);
}

// Parts of a node in reading order: {target, text}. An element with `data-token` stands for that token.
function textParts(node) {
  return [...node.childNodes].flatMap((child) => {
    if (child.nodeType === Node.TEXT_NODE) return [{ target: child, text: child.data }];
    if (child.dataset.token) return [{ target: child, text: child.dataset.token }];
    return child.classList.contains("tag") ? [] : textParts(child);
  });
}

// Places of the rows of a map in a text that the model has read: of the part of its input with most matches.
function locateRows(text, names) {
  const starts = [0, ...names.flatMap((name, n) => (isSpecial(name) ? [n + 1] : []))];
  const attempts = starts.map((start) => locateTokens(text, names.slice(start).map((name) => ({ name })))
    .map((place) => ({ ...place, index: place.index + start })));
  return attempts.reduce((best, places) => (places.length > best.length ? places : best));
}

// Link the words of a text to the rows of a map; marks in the text stay as they are.
function linkRows(node, { queries }) {
  const parts = textParts(node), places = locateRows(parts.map(({ text }) => text).join(""), queries.tokens);
  const attributes = (index) => ({ class: "word", role: "button", tabindex: -1, "data-query": index });
  let offset = 0;
  for (const { target, text } of parts) {
    const inside = places.filter(({ start }) => start >= offset && start < offset + text.length);
    if (target.nodeType !== Node.TEXT_NODE) inside.slice(0, 1).forEach(({ index }) => fill(target, attributes(index), []));
    else {
      let end = 0;
      const pieces = inside.flatMap((place) => {
        const [start, stop] = [place.start - offset, place.end - offset], before = text.slice(end, start);
        end = stop;
        return [before, make("span", attributes(place.index), text.slice(start, stop))];
      });
      if (pieces.length) target.replaceWith(...pieces, text.slice(end));
    }
    offset += text.length;
  }
  moveByArrows([...node.querySelectorAll(".word")]);
}

// One stop of the Tab key; arrow keys move among the words, Enter clicks.
function moveByArrows(words) {
  words.forEach((word, index) => {
    word.tabIndex = index === 0 ? 0 : -1;
    word.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); word.click(); return; }
      const next = words[index + ({ ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0)];
      if (!next || next === word) return;
      event.preventDefault();
      words.forEach((other) => { other.tabIndex = other === next ? 0 : -1; });
      next.focus();
    });
  });
}

// A menu of alternatives below a word; `choose` gets the chosen token.
function openAlternatives(anchor, choices, current, choose) {
  closeMenu();
  const items = choices.map(([token, probability]) => button("", () => { closeMenu(); choose(token); },
    { role: "menuitem", class: token === current ? "current" : null }));
  items.forEach((item, index) => {
    const [token, probability] = choices[index];
    item.append(make("span", {}, isSpecial(token) ? "(end)" : withoutMark(token) || "␣"),
      make("i", { style: `width:${100 * probability}%`, "aria-hidden": "true" }), make("span", { class: "faint" }, percent(probability)));
  });
  const menu = make("div", { class: "menu", role: "menu", id: "menu", "aria-label": "Alternatives" }, ...items);
  menu.addEventListener("keydown", (event) => {
    const index = items.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") { event.preventDefault(); closeMenu(); anchor.focus(); }
    if (step) { event.preventDefault(); items[(index + step + items.length) % items.length].focus(); }
  });
  document.body.append(menu);
  const box = anchor.getBoundingClientRect();
  const left = Math.min(box.left + scrollX, scrollX + document.documentElement.clientWidth - menu.offsetWidth - 8);
  menu.style.left = `${Math.max(8, left)}px`;
  menu.style.top = `${box.bottom + scrollY + 4}px`;
  items[0]?.focus();
}

function closeMenu() { $("menu")?.remove(); }

document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest?.("#menu")) closeMenu();
});
