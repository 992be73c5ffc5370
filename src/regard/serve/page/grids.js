// Results that are sequences, tables or episodes: bits, residues, distances, actions, support sets.

const CELL = 18; // pixels of a bit
const LABEL_WIDTH = 52; // pixels before the first step

// --- bits: what was read, what the model repeats, and what it should have

function showBits(prediction, { select, width: room }) {
  const read = prediction.source.split(/\s+/), written = prediction.text.split(/\s+/).filter(Boolean);
  const target = prediction.target.split(/\s+/), steps = read.length + target.length;
  const width = Math.max(...target.map((bits) => bits.length));
  const lanes = [["Input", read, 0], ["Output", written, read.length], ["Target", target, read.length]];
  const cell = Math.max(3, Math.min(CELL, (room - LABEL_WIDTH) / steps));
  const height = (cell * width + 10) * lanes.length;
  const picture = draw("svg", { viewBox: `0 0 ${LABEL_WIDTH + steps * cell} ${height}`, class: "bits", role: "img",
    style: `width:${LABEL_WIDTH + steps * cell}px`,
    "aria-label": `${read.length} steps of input, ${target.length} of output, ${prediction.wrong} wrong bits` });
  const columns = Array.from({ length: steps }, () => []);
  lanes.forEach(([name, vectors, offset], lane) => {
    const top = lane * (cell * width + 10);
    picture.append(draw("text", { x: 0, y: top + (cell * width) / 2 + 4 }, name));
    vectors.forEach((bits, column) => {
      const x = LABEL_WIDTH + (offset + column) * cell, step = offset + column;
      const isVector = /^[01]+$/.test(bits);
      for (let row = 0; row < (isVector ? bits.length : width); row++) {
        const share = !isVector ? 0.5 : name === "Output" ? prediction.probabilities?.[column]?.[row] ?? Number(bits[row]) : Number(bits[row]);
        const isWrong = name === "Output" && target[column]?.[row] !== bits[row];
        const square = draw("rect", { x, y: top + row * cell, width: cell - 1, height: cell - 1,
          class: isVector ? "bit" : "bit marker", style: isVector ? `fill-opacity:${share}` : "", "data-query": step });
        columns[step].push(square);
        picture.append(square);
        if (isWrong) picture.append(draw("rect", { x: x + 0.5, y: top + row * cell + 0.5, width: cell - 2, height: cell - 2, class: "wrong" }));
      }
    });
  });
  const now = draw("rect", { y: 0, width: cell, height: height - 4, class: "now" });
  picture.append(now);
  const slider = stepSlider(steps, (step) => {
    now.setAttribute("x", LABEL_WIDTH - 0.5 + step * cell);
    select(step);
  }, { picture });
  const isRight = prediction.wrong === 0;
  return [headline(isRight ? "All bits are right" : `${prediction.wrong} wrong ${prediction.wrong === 1 ? "bit" : "bits"}`),
    picture, slider, factTable({ "least certain bit": percent(prediction.confidence), "bits of surprise": prediction.bits })];
}

// --- actions: one choice, or an episode of choices

function showAction(prediction) {
  return [headline(`Action ${prediction.action}`),
    make("p", { class: "faint" }, `expected sum of rewards: ${number(prediction.value)}`),
    make("div", { class: "bars", role: "group", "aria-label": "Actions" },
      ...Object.entries(prediction.probabilities).map(([name, share]) =>
        barRow(`Action ${name}`, share, { isBest: Number(name) === prediction.action })))];
}

function showEpisode(prediction, { select, width: room }) {
  const { actions, rewards, states = [], probabilities = [] } = prediction;
  const count = Math.max(...actions, ...probabilities.map((row) => row.length));
  const [left, top] = [64, 4];
  const cell = Math.max(12, Math.min(34, (room - left - 4) / actions.length));
  const picture = draw("svg", { viewBox: `0 0 ${left + cell * actions.length + 4} ${top + cell * count + 22}`, class: "episode", role: "img",
    style: `width:${left + cell * actions.length + 4}px`,
    "aria-label": `${actions.length} steps, return ${number(prediction.return)}` });
  for (let action = 1; action <= count; action++) {
    const y = top + (action - 1) * cell;
    picture.append(draw("text", { x: 0, y: y + cell / 2 + 4 }, `Action ${action}`));
    actions.forEach((chosen, step) => {
      const share = probabilities[step]?.[action - 1] ?? 0;
      picture.append(draw("rect", { x: left + step * cell, y, width: cell - 2, height: cell - 2, rx: 3, class: "policy", "data-query": step,
        style: `fill-opacity:${(0.08 + 0.6 * share).toFixed(3)}` }, draw("title", {}, `step ${step + 1}, action ${action}: ${percent(share)}`)));
      if (chosen === action) {
        picture.append(draw("circle", { cx: left + step * cell + cell / 2 - 1, cy: y + cell / 2 - 1, r: cell / 4,
          class: rewards[step] > 0 ? "won" : "lost", "data-query": step }));
      }
    });
  }
  actions.forEach((_, step) => picture.append(draw("text", { x: left + (step + 0.5) * cell - 1, y: top + cell * count + 15, "text-anchor": "middle" }, `${step + 1}`)));
  const now = draw("rect", { y: 1, width: cell, height: cell * count + 20, class: "now" });
  picture.append(now);
  const said = make("p", { class: "step-text" });
  const bars = make("div", { class: "bars", role: "group", "aria-label": "Actions at this step" });
  const slider = stepSlider(actions.length, (step) => {
    now.setAttribute("x", left + step * cell - 1);
    const total = rewards.slice(0, step + 1).reduce((sum, reward) => sum + reward, 0);
    said.textContent = `${states.length ? `State ${states[step]}: a` : "A"}ction ${actions[step]}, reward ${number(rewards[step])}; ${number(total)} so far`;
    bars.replaceChildren(...(probabilities[step] ?? []).map((share, n) =>
      barRow(`Action ${n + 1}`, share, { isBest: n + 1 === actions[step] })));
    select(step);
  }, { picture });
  const legend = make("p", { class: "faint legend" }, make("span", {}, make("i", { class: "won" }), "rewarded"),
    make("span", {}, make("i", { class: "lost" }), "not rewarded"), make("span", {}, "shade: probability before the step"));
  const isWinOrLoss = rewards.every((reward) => reward === 0 || reward === 1), total = number(prediction.return);
  const title = isWinOrLoss ? `${total} of ${actions.length} actions rewarded` : `Sum of rewards: ${total}`;
  return [headline(title), picture, legend, slider, said, bars];
}

// --- few-shot: the support set and the query

function exampleNode(example, row) {
  if (typeof example === "string") return make("img", { src: example, alt: "", class: "example", "data-query": row });
  return make("code", { "data-query": row }, example.map((value) => value.toFixed(2)).join(" "));
}

function showSupport(prediction) {
  const { support, query, label, probabilities } = prediction;
  const labels = [...new Set(support.map((item) => item.label))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const isPoints = Array.isArray(query) && query.length === 2;
  const cards = labels.map((name) => make("figure", { class: name === label ? "chosen" : null },
    ...support.flatMap((item, row) => (item.label === name ? [exampleNode(item.example, row)] : [])),
    make("figcaption", {}, `class ${name}`, make("b", {}, ` ${percent(probabilities[name] ?? 0)}`))));
  const episode = make("div", { class: "support" },
    make("figure", { class: "query" }, exampleNode(query, support.length), make("figcaption", {}, "query")), ...cards);
  return [headline(`Class ${label}`), isPoints ? pointPlot(support, query, label) : episode,
    classBars(probabilities, { best: label })];
}

function pointPlot(support, query, label) {
  const points = [...support.map((item) => item.example), query];
  const [low, high] = [0, 1].map((axis) => points.map((point) => point[axis])).reduce(
    ([a, b], values) => [Math.min(a, ...values), Math.max(b, ...values)], [Infinity, -Infinity]);
  const place = (value) => 20 + (260 * (value - low)) / (high - low || 1);
  const picture = draw("svg", { viewBox: "0 0 300 300", class: "points", role: "img",
    "aria-label": `${support.length} labeled points; the query is of class ${label}` });
  support.forEach(({ example: [x, y], label: name }, row) => {
    picture.append(draw("circle", { cx: place(x), cy: 300 - place(y), r: 7, style: `fill:${labelColor(name)}`, "data-query": row }),
      draw("text", { x: place(x) + 10, y: 304 - place(y) }, name));
  });
  picture.append(draw("path", { d: `M${place(query[0]) - 8} ${300 - place(query[1])}h16m-8 -8v16`, class: "cross", "data-query": support.length }),
    draw("text", { x: place(query[0]) + 10, y: 296 - place(query[1]), class: "strong", "data-query": support.length }, `query: ${label}`));
  return picture;
}

// --- proteins: states of residues, or distances

const STRUCTURE = { H: "helix", E: "strand", C: "coil", G: "short helix", I: "wide helix", B: "bridge", T: "turn", S: "bend", L: "loop" };

function showStates(prediction) {
  const { sequence, states, probabilities = [] } = prediction;
  const residues = [...sequence].map((letter, index) => {
    const share = probabilities[index]?.[states[index]] ?? 1;
    return make("span", { class: "residue", "data-query": index, style: `--hue:${labelColor(states[index])};--share:${Math.round(100 * share)}%`,
      title: `${letter}${index + 1}: ${states[index]} ${percent(share)}` }, make("b", {}, letter), make("i", {}, states[index]));
  });
  const groups = [];
  for (let start = 0; start < residues.length; start += 10) {
    groups.push(make("span", { class: "ten" }, make("small", {}, `${start + 1}`), ...residues.slice(start, start + 10)));
  }
  const counts = {};
  for (const state of states) counts[state] = (counts[state] ?? 0) + 1;
  const isStructure = Object.keys(counts).every((name) => name in STRUCTURE);
  const legend = make("p", { class: "legend" }, ...Object.entries(counts).sort((a, b) => b[1] - a[1]).map(([name, count]) =>
    make("span", {}, make("i", { style: `background:${labelColor(name)}` }), `${isStructure ? `${STRUCTURE[name]} (${name})` : name}: ${percent(count / states.length)} `)));
  return [legend, make("div", { class: "sequence", role: "group", "aria-label": `${sequence.length} residues with their states: ${states}` }, ...groups)];
}

function showDistances(prediction, { width: room }) {
  const { distances, contacts } = prediction, count = distances.length;
  const left = 26, cell = Math.max(2, Math.min(26, (room - left) / count));
  const top = Math.max(...distances.flat());
  const isContact = new Set(contacts.map(([i, j]) => `${i} ${j}`));
  const picture = draw("svg", { viewBox: `0 0 ${left + cell * count} ${left + cell * count}`, class: "distances", role: "img",
    style: `width:${left + cell * count}px`, "aria-label": `Distances between ${count} points, ${contacts.length} contacts` });
  const every = Math.ceil(18 / cell);
  distances.forEach((row, i) => {
    if (i % every === 0) {
      picture.append(draw("text", { x: left - 5, y: left + (i + 0.5) * cell + 4, "text-anchor": "end" }, `${i + 1}`),
        draw("text", { x: left + (i + 0.5) * cell, y: left - 7, "text-anchor": "middle" }, `${i + 1}`));
    }
    row.forEach((distance, j) => {
      picture.append(draw("rect", { x: left + j * cell, y: left + i * cell, width: cell - 0.5, height: cell - 0.5, class: "near", "data-query": i,
        style: `fill-opacity:${(1 - distance / (top || 1)).toFixed(3)}` }, draw("title", {}, `${i + 1} and ${j + 1}: ${number(distance)}`)));
      if (isContact.has(`${Math.min(i, j) + 1} ${Math.max(i, j) + 1}`)) {
        picture.append(draw("circle", { cx: left + (j + 0.5) * cell, cy: left + (i + 0.5) * cell, r: Math.max(1, cell / 6), class: "contact", "data-query": i }));
      }
    });
  });
  const legend = make("p", { class: "faint legend" }, make("i", { class: "near" }), "near", make("i", { class: "far" }), `far (${number(top)})`,
    make("i", { class: "dot" }), "contact");
  return [headline(`${contacts.length} ${contacts.length === 1 ? "contact" : "contacts"}`), picture, legend];
}
