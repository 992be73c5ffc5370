// Music: a keyboard that writes the input, a piano roll, and sound by the browser itself.

const NOTE_NAMES = ["C", "C♯", "D", "D♯", "E", "F", "F♯", "G", "G♯", "A", "A♯", "B"];
const BLACK_KEYS = new Set([1, 3, 6, 8, 10]);
const KEYBOARD_RANGE = [48, 83]; // pitches of the keyboard: three octaves from C3
const QUARTERS_PER_MINUTE = 96;

const noteName = (pitch) => `${NOTE_NAMES[pitch % 12]}${Math.floor(pitch / 12) - 1}`;

function abcNote(pitch) { // a pitch in ABC notation: C, is C3 and c is C5
  const name = NOTE_NAMES[pitch % 12], octave = Math.floor(pitch / 12) - 1;
  const sharp = name.endsWith("♯") ? "^" : "", letter = name[0];
  if (octave >= 5) return sharp + letter.toLowerCase() + "'".repeat(octave - 5);
  return sharp + letter + ",".repeat(4 - octave);
}

// --- sound

const player = { context: null, nodes: [], onend: null };

function stopSound() {
  player.nodes.forEach((node) => { try { node.stop(); } catch { /* it has ended */ } });
  player.nodes = [];
  player.onend?.();
  player.onend = null;
}

// Play notes {pitch, start, length} in quarter notes; `ontime` gets the time as it passes.
function playNotes(notes, { ontime = () => {}, onend = () => {} } = {}) {
  stopSound();
  player.context ??= new AudioContext();
  const { context } = player, quarter = 60 / QUARTERS_PER_MINUTE, begin = context.currentTime + 0.05;
  const volume = context.createGain();
  volume.gain.value = 0.12;
  volume.connect(context.destination);
  for (const { pitch, start, length } of notes) {
    const tone = context.createOscillator(), envelope = context.createGain();
    const from = begin + start * quarter, to = from + Math.max(0.1, length * quarter - 0.02);
    tone.type = "triangle";
    tone.frequency.value = 440 * 2 ** ((pitch - 69) / 12);
    envelope.gain.setValueAtTime(0, from);
    envelope.gain.linearRampToValueAtTime(1, from + 0.015);
    envelope.gain.setTargetAtTime(0.5, from + 0.02, 0.25);
    envelope.gain.setTargetAtTime(0, to - 0.05, 0.03);
    tone.connect(envelope).connect(volume);
    tone.start(from);
    tone.stop(to + 0.1);
    player.nodes.push(tone);
  }
  const duration = Math.max(0, ...notes.map(({ start, length }) => start + length));
  let isOn = true;
  player.onend = () => { isOn = false; onend(); };
  const follow = () => {
    if (!isOn) return;
    const time = (context.currentTime - begin) / quarter;
    ontime(Math.max(0, time));
    if (time > duration) stopSound();
    else requestAnimationFrame(follow);
  };
  requestAnimationFrame(follow);
}

// --- piano roll

// Notes as rectangles; those that start before `given` are the input. With `hasRows`, a step is a row of
// the attention, after the first row for the beginning.
function pianoRoll(notes, { given = 0, caption = "Piano roll", width = 320, room = 260, hasRows = false } = {}) {
  if (!notes.length) return make("p", { class: "faint" }, "No notes: silence.");
  const pitches = notes.map(({ pitch }) => pitch);
  const [low, high] = [Math.min(...pitches) - 1, Math.max(...pitches) + 1];
  const end = Math.max(...notes.map(({ start, length }) => start + length));
  const row = Math.max(5, Math.min(12, room / (high - low + 1)));
  const [left, height] = [30, row * (high - low + 1)];
  const x = (time) => left + (time / end) * (width - left - 4);
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height + 20}`, class: "roll", role: "img", style: `width:${width}px`,
    "aria-label": `${caption}: ${notes.length} notes in ${number(end)} quarter notes, from ${noteName(low + 1)} to ${noteName(high - 1)}` });
  for (let pitch = low; pitch <= high; pitch++) {
    const y = (high - pitch) * row;
    if (BLACK_KEYS.has(pitch % 12)) picture.append(draw("rect", { x: left, y, width: width - left, height: row, class: "roll-black" }));
    if (pitch % 12 === 0) {
      picture.append(draw("line", { x1: left, x2: width, y1: y + row, y2: y + row, class: "roll-line" }),
        draw("text", { x: left - 5, y: y + row, "text-anchor": "end" }, noteName(pitch)));
    }
  }
  for (let bar = 0; bar <= end; bar += 4) {
    picture.append(draw("line", { x1: x(bar), x2: x(bar), y1: 0, y2: height, class: "roll-line" }));
    if (bar % (end > 48 ? 16 : 8) === 0 && bar < end) picture.append(draw("text", { x: x(bar) + 2, y: height + 15 }, number(bar + 1)));
  }
  for (const { pitch, start, length } of notes) {
    picture.append(draw("rect", { x: x(start) + 0.5, y: (high - pitch) * row + 0.5, rx: 2, height: row - 1,
      width: Math.max(2, x(start + length) - x(start) - 1), class: start < given ? "note given" : "note", "data-query": hasRows ? start + 1 : null },
      draw("title", {}, `${noteName(pitch)}, ${number(length)} quarter notes`)));
  }
  const needle = draw("line", { x1: left, x2: left, y1: 0, y2: height, class: "needle", visibility: "hidden" });
  picture.append(needle);
  picture.showTime = (time) => {
    needle.setAttribute("visibility", time === null ? "hidden" : "visible");
    if (time !== null) ["x1", "x2"].forEach((name) => needle.setAttribute(name, x(Math.min(end, time))));
  };
  return picture;
}

function playableRoll(notes, options) {
  const roll = pianoRoll(notes, options);
  if (!notes.length) return [roll];
  const play = button("▶ Play", () => {
    if (play.dataset.on) { stopSound(); return; }
    playNotes(notes, { ontime: roll.showTime, onend: () => {
      delete play.dataset.on;
      play.textContent = "▶ Play";
      roll.showTime(null);
    } });
    play.dataset.on = "yes";
    play.textContent = "■ Stop";
  });
  const legend = options.given ? make("span", { class: "faint legend" },
    make("i", { class: "given" }), "given", make("i"), "composed") : null;
  return [roll, make("div", { class: "row" }, play, legend)];
}

// --- input

function createKeyboard(onnote) {
  const keys = [];
  for (let pitch = KEYBOARD_RANGE[0]; pitch <= KEYBOARD_RANGE[1]; pitch++) {
    const isBlack = BLACK_KEYS.has(pitch % 12);
    keys.push(button(pitch % 12 ? "" : noteName(pitch), () => {
      playNotes([{ pitch, start: 0, length: 0.8 }]);
      onnote(pitch);
    }, { class: isBlack ? "key black" : "key", "aria-label": noteName(pitch), "data-pitch": pitch }));
  }
  keys.forEach((key, index) => key.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !keys[index + step]) return;
    event.preventDefault();
    keys[index + step].focus();
    keys.forEach((other, n) => { other.tabIndex = n === index + step ? 0 : -1; });
  }));
  keys.forEach((key, index) => { key.tabIndex = index === 12 ? 0 : -1; });
  const node = make("div", { class: "keyboard", role: "group", tabindex: -1,
    "aria-label": "Keyboard: arrow keys move, Enter plays and writes a note" }, ...keys);
  return { node, mark: (pitches) => keys.forEach((key) =>
    key.setAttribute("aria-pressed", pitches.includes(Number(key.dataset.pitch)))) };
}

function parseChords(text) {
  try {
    const steps = JSON.parse(text || "[]");
    return Array.isArray(steps) && steps.every(Array.isArray) ? steps : null;
  } catch { return null; }
}

// Steps of a roll as notes; a key that is repeated is held, as the server does.
function chordNotes(steps) {
  const notes = [];
  steps.forEach((step, start) => step.forEach((pitch) => {
    const held = notes.find((note) => note.pitch === pitch && note.start + note.length === start);
    if (held) held.length += 1;
    else notes.push({ pitch, start, length: 1 });
  }));
  return notes;
}

// A JSON list of chords: keys toggle notes of the last chord.
function createChordField(field, id) {
  const input = make("input", { id, type: "text", placeholder: field.example, autocomplete: "off" });
  const roll = make("div", { class: "small-roll" });
  const write = (steps) => { input.value = steps.length ? JSON.stringify(steps) : ""; show(); };
  const keyboard = createKeyboard((pitch) => {
    const steps = parseChords(input.value) ?? [], last = steps.pop() ?? [];
    steps.push(last.includes(pitch) ? last.filter((other) => other !== pitch) : [...last, pitch].sort((a, b) => a - b));
    write(steps);
  });
  function show() {
    const steps = parseChords(input.value);
    keyboard.mark(steps?.at(-1) ?? []);
    roll.replaceChildren(...(steps?.length ? [pianoRoll(chordNotes(steps), { caption: "Your beginning", room: 110 })] : []));
  }
  input.addEventListener("input", show);
  show();
  const tools = make("div", { class: "row" },
    button("Next chord", () => write([...(parseChords(input.value) ?? []), []])),
    button("Remove chord", () => write((parseChords(input.value) ?? []).slice(0, -1))),
    button("Play", () => playNotes(chordNotes(parseChords(input.value) ?? []))));
  return { node: make("div", {}, keyboard.node, tools, roll, input),
    read: () => input.value.replace(/,\[\]\]$/, "]").replace(/^\[\[\]\]$/, ""),
    write: (text) => { input.value = text ?? ""; show(); }, focus: () => input.focus() };
}

// A tune in ABC notation: keys append notes.
function createTuneField(field, id) {
  const input = make("textarea", { id, placeholder: field.example || "M:4/4\nL:1/8\nK:G\n", spellcheck: "false" });
  const keyboard = createKeyboard((pitch) => { input.value += abcNote(pitch); });
  return { node: make("div", {}, input, keyboard.node), read: () => input.value,
    write: (text) => { input.value = text ?? ""; }, focus: () => input.focus() };
}
