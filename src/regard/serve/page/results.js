// How a prediction is shown, decided by the keys of its JSON. A view is {matches, show}; `show`
// returns elements. Elements with the class "linked" have words of the output, which can be hovered
// and clicked; "rows" is for texts that the model has read. `data-query` is a row of the attention.

const MAX_BARS = 10;
const MIN_PROBABILITY = 0.001; // of an output; a smaller one is shown as its logarithm
const FACT_NAMES = { no_answer: "no answer", found: "rows found" };

const VIEWS = [
  { matches: (p) => p.support && p.query !== undefined, show: showSupport },
  { matches: (p) => Array.isArray(p.actions) && Array.isArray(p.rewards), show: showEpisode },
  { matches: (p) => p.action !== undefined && p.probabilities, show: showAction },
  { matches: (p) => p.source !== undefined && p.target !== undefined && p.wrong !== undefined, show: showBits },
  { matches: (p) => p.sequence !== undefined && p.states !== undefined, show: showStates },
  { matches: (p) => Array.isArray(p.distances), show: showDistances },
  { matches: (p) => Array.isArray(p.notes), show: showNotes },
  { matches: (p) => Array.isArray(p.spans) && p.sentence !== undefined, show: showSpans },
  { matches: (p) => Array.isArray(p.answers) && p.context !== undefined, show: showAnswer },
  { matches: (p) => Array.isArray(p.masks) && p.filled !== undefined, show: showBlanks },
  { matches: (p) => p.reply !== undefined, show: showReply },
  { matches: (p) => p.label !== undefined && p.probabilities, show: showClasses },
  { matches: () => true, show: showText },
];

// `context` has the values of the form, the run, and what the page can do.
function predictionNodes(prediction, context) {
  return VIEWS.find((view) => view.matches(prediction)).show(prediction, context);
}

const headline = (text, attributes = {}) => make("p", { class: "answer", ...attributes }, text || "(empty)");

const linkedText = (text) => headline(text, { class: "answer linked" });

function factTable(facts) {
  const { log_prob, ...others } = facts;
  const isLikely = Math.exp(log_prob) >= MIN_PROBABILITY;
  const output = log_prob === undefined ? {} : isLikely ? { "probability of the output": percent(Math.exp(log_prob)) } : { "log-probability": log_prob };
  const rows = Object.entries({ ...others, ...output }).filter(([, value]) => typeof value === "number" || (typeof value === "string" && value));
  if (!rows.length) return null;
  return make("dl", { class: "facts" }, ...rows.flatMap(([name, value]) => [
    make("dt", {}, FACT_NAMES[name] ?? readable(name)),
    make("dd", {}, typeof value === "number" ? number(value) : value)]));
}

// --- classes

function classBars(probabilities, { best = null, title = "Probabilities" } = {}) {
  const rows = Object.entries(probabilities).sort((a, b) => b[1] - a[1]);
  const shown = rows.slice(0, MAX_BARS), rest = rows.slice(MAX_BARS);
  const bars = shown.map(([name, share]) => barRow(name, share, { isBest: name === best }));
  if (rest.length) {
    bars.push(barRow(`${rest.length} more`, rest.reduce((sum, [, share]) => sum + share, 0)));
  }
  return make("div", { class: "bars", role: "group", "aria-label": title }, ...bars);
}

function showClasses(prediction) {
  const name = String(prediction.label), share = prediction.probabilities[name];
  return [headline(name), share === undefined ? null : make("p", { class: "faint" }, `probability ${percent(share)}`),
    classBars(prediction.probabilities, { best: name })];
}

// --- text

function showText(prediction, { values }) {
  const { text, outputs = prediction.captions ?? [], ...others } = prediction;
  const given = Object.values(values ?? {}).find((value) => typeof value === "string" && value.trim() && text.startsWith(value));
  const nodes = [linkedText(text)];
  if (given) nodes[0].dataset.given = given.length;
  if (outputs.length > 1) {
    const best = Math.max(...outputs.map(({ score }) => score));
    nodes.push(make("details", {}, make("summary", {}, `${outputs.length} candidates`),
      make("ol", { class: "candidates" }, ...outputs.map((output) => make("li", {}, output.text,
        make("span", { class: "faint" }, ` ${number(output.score - best || 0)}`))))));
  }
  const log_prob = outputs[0]?.log_prob;
  nodes.push(factTable({ ...others, ...(log_prob === undefined ? {} : { log_prob }) }));
  return nodes;
}

// --- spans of a text

function markedText(text, spans, describe) {
  const node = make("p", { class: "answer spans rows" });
  let end = 0;
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    if (span.start < end) continue;
    node.append(text.slice(end, span.start), describe(span, text.slice(span.start, span.end)));
    end = span.end;
  }
  node.append(text.slice(end));
  return node;
}

function showSpans(prediction) {
  const node = markedText(prediction.sentence, prediction.spans, (span, text) =>
    make("mark", { style: `--hue:${labelColor(span.label)}`, title: `${span.label}: ${percent(span.probability ?? 1)}` },
      text, make("span", { class: "tag" }, readable(span.label))));
  const labels = [...prediction.spans].sort((a, b) => a.start - b.start);
  const rows = labels.map((span) => barRow(span.text, span.probability ?? 1));
  const intent = prediction.intent === undefined ? [] : [make("p", { class: "intent" },
    make("span", { class: "faint" }, "Intent "), make("b", {}, readable(prediction.intent)),
    make("span", { class: "faint" }, ` ${percent(prediction.probability)}`))];
  return [...intent, node, labels.length
    ? make("div", { class: "bars", role: "group", "aria-label": "Spans" }, ...rows)
    : make("p", { class: "faint" }, "No span is labeled.")];
}

function showAnswer(prediction) {
  const { context, answers, answer } = prediction;
  const hasAnswer = prediction.start !== null && prediction.start !== undefined;
  const span = hasAnswer ? [{ start: prediction.start, end: prediction.end }] : [];
  const text = markedText(context, span, (_, part) => make("mark", { style: "--hue:var(--accent)" }, part));
  text.classList.replace("answer", "context");
  const bars = answers.map((candidate, index) =>
    barRow(candidate.text, candidate.probability, { isBest: hasAnswer && index === 0 }));
  if (prediction.no_answer > 0) bars.push(barRow("no answer", prediction.no_answer, { isBest: !hasAnswer }));
  return [headline(hasAnswer ? answer : "No answer in this text"), text,
    make("div", { class: "bars", role: "group", "aria-label": "Candidates" }, ...bars)];
}

function showBlanks(prediction, { values }) {
  const parts = (values?.text ?? "").split(/\[MASK\]/i);
  if (parts.length !== prediction.masks.length + 1) return showText({ text: prediction.filled }, { values });
  const node = make("p", { class: "answer spans rows" }, parts[0]);
  prediction.masks.forEach((candidates, index) => node.append(
    make("mark", { style: `--hue:var(--hue-${index % 8})`, "data-token": "[MASK]" }, candidates[0]?.word ?? "?"), parts[index + 1]));
  const lists = prediction.masks.map((candidates, index) => make("div", { class: "blank" },
    make("h3", {}, prediction.masks.length > 1 ? `Blank ${index + 1}` : "Candidates"),
    ...candidates.map(({ word, probability }, rank) => barRow(word, probability, { isBest: rank === 0 }))));
  return [node, make("div", { class: "bars blanks" }, ...lists)];
}

// --- conversation

function showReply(prediction, { values }) {
  const turns = [...(values?.turns ?? Object.values(values ?? {}).find(Array.isArray) ?? []), prediction.reply];
  const bubbles = turns.map((text, index) => {
    const isModel = (turns.length - index) % 2 === 1, isLast = index === turns.length - 1;
    return make("li", { class: `bubble${isModel ? " model" : ""}` },
      make("span", { class: "sr" }, isModel ? "Model: " : "You: "),
      isLast ? make("span", { class: "linked" }, text || "(empty)") : text);
  });
  return [make("ol", { class: "chat" }, ...bubbles), showLookup(prediction)];
}

function showLookup({ wishes, found, rows = [], row }) {
  if (wishes === undefined) return null;
  const chips = Object.entries(wishes).map(([name, value]) =>
    make("span", { class: "chip" }, `${readable(name)}: ${value}`));
  const shown = rows.length ? rows : [row].filter(Boolean);
  const names = [...new Set(shown.flatMap((values) => Object.keys(values)))];
  const rank = (name) => (name === "name" ? 0 : name in wishes ? 1 : 2); // what a row is called, then what was wished
  const columns = names.sort((a, b) => rank(a) - rank(b)).slice(0, 6);
  const table = shown.length === 0 ? null : make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Rows of the table" },
    make("table", {}, make("thead", {}, make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, readable(name))))),
      make("tbody", {}, ...shown.map((values, index) => make("tr", { class: index ? null : "used" },
        ...columns.map((name) => make("td", {}, String(values[name] ?? ""))))))));
  return make("div", { class: "lookup" }, make("h3", {}, "Looked up"),
    make("p", {}, chips.length ? "" : "no wishes so far ", ...chips, make("span", { class: "faint" },
      ` ${found} ${found === 1 ? "row" : "rows"} found${found > shown.length ? `, the first ${shown.length} here` : ""}`)), table);
}

// --- music

function showNotes(prediction, { width }) {
  const source = prediction.abc ? make("details", {}, make("summary", {}, "ABC notation"),
    make("pre", {}, prediction.abc)) : null;
  return [...playableRoll(prediction.notes, { given: prediction.given ?? 0, width, hasRows: Boolean(prediction.steps) }), source,
    factTable({ log_prob: prediction.log_prob })];
}
