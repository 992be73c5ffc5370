// A form made of the input fields of a run; each field is {node, read, write, focus}.

const SUGGESTION_DELAY = 350; // milliseconds after the last key

function createForm(run, { onsubmit }) {
  const fields = run.fields.map((field) => {
    const id = `field-${field.name}`;
    return { ...field, id, control: createControl(field, id, onsubmit) };
  });
  const nodes = fields.map((field, index) => {
    const hint = field.is_required ? null : make("span", { class: "faint" }, " (optional)");
    const node = make("div", { class: "field" }, make("label", { for: field.id }, field.label, hint), field.control.node);
    const isExtra = index > 0 && !field.is_required;
    return isExtra ? make("details", { class: "field" }, make("summary", {}, field.label), node) : node;
  });
  return {
    nodes,
    values: () => Object.fromEntries(fields.map((field) => [field.name, field.control.read()])),
    write: (values) => fields.forEach((field) => field.control.write(values[field.name])),
    missing: () => fields.find((field) => field.is_required && !field.control.read().length)
      ?? fields.find((field) => field.kind === "list" && !field.control.read().at(-1)),
    // A conversation goes on: its turns are kept, and the field is empty for the next one.
    answered: (prediction, values) => fields.forEach((field) =>
      field.control.answered?.(prediction.text, values[field.name])),
    isTouched: () => fields.some((field) => field.control.read().length),
    focus: () => fields[0]?.control.focus(),
  };
}

function createControl(field, id, onsubmit) {
  const kinds = { image: createImageField, chords: createChordField, tune: createTuneField,
    list: createTurnsField, actions: createActionsField };
  return (kinds[field.kind] ?? createTextField)(field, id, onsubmit);
}

function createTextField(field, id, onsubmit) {
  const isLong = field.kind === "lines";
  const input = make("textarea", { id, placeholder: field.example, rows: isLong ? 3 : 1, class: isLong ? null : "line" });
  if (!isLong) {
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) { event.preventDefault(); onsubmit(); }
    });
  }
  return { node: input, read: () => input.value, focus: () => input.focus(),
    write: (text) => { input.value = text ?? ""; } };
}

// The turns of a conversation; the last is typed.
function createTurnsField(field, id) {
  let turns = [];
  const input = make("input", { id, type: "text", autocomplete: "off", placeholder: "Your message" });
  const restart = button("New chat", () => {
    turns = [];
    input.value = "";
    restart.hidden = true;
    input.focus();
    restart.dispatchEvent(new CustomEvent("restart", { bubbles: true }));
  }, { hidden: true });
  return {
    node: make("div", { class: "row nowrap" }, input, restart),
    read: () => (input.value || !turns.length ? [...turns, input.value] : turns).filter((text, index, all) => text || index < all.length - 1),
    write: (list) => {
      turns = (list ?? []).slice(0, -1);
      input.value = list?.at(-1) ?? "";
      restart.hidden = !turns.length;
    },
    answered: (text, list) => { turns = [...list, text]; input.value = ""; restart.hidden = false; },
    focus: () => input.focus(),
  };
}

// Actions with their rewards: a button for each, which goes on at once.
function createActionsField(field, id, onsubmit) {
  const input = make("input", { id, type: "text", placeholder: field.example, autocomplete: "off" });
  const add = (action, reward) => {
    input.value = `${input.value} ${action}:${reward}`.trim();
    onsubmit();
  };
  const cells = Array.from({ length: field.action_count ?? 0 }, (_, n) => make("div", { class: "arm" },
    make("b", {}, `${n + 1}`),
    button("won", () => add(n + 1, 1), { "aria-label": `Action ${n + 1} won` }),
    button("lost", () => add(n + 1, 0), { "aria-label": `Action ${n + 1} lost` })));
  return { node: make("div", {}, input,
      make("p", { class: "faint" }, "Say what an action has brought, and see which one the model takes next:"),
      make("div", { class: "arms" }, ...cells,
        button("Undo", () => { input.value = input.value.trim().split(/\s+/).slice(0, -1).join(" "); onsubmit(); }))),
    read: () => input.value, write: (text) => { input.value = text ?? ""; }, focus: () => input.focus() };
}

// The likeliest next words below a text that can be continued, as the user types.
function attachSuggestions(run, form, container) {
  const [field] = run.fields;
  container.replaceChildren();
  if (!run.has_details || run.fields.length !== 1 || !["text", "lines"].includes(field.kind)) return;
  let timer = null, controller = null;
  const input = $(`field-${field.name}`);
  const show = (words) => container.replaceChildren(...words.slice(0, 6).map(({ word, probability }) =>
    button(word, () => {
      const base = input.value.replace(/\S*$/, (typed) => (word.startsWith(typed) ? "" : `${typed} `));
      input.value = `${base}${word} `;
      input.focus();
      update();
    }, { class: "chip", title: percent(probability) })));
  async function update() {
    controller?.abort();
    controller = new AbortController();
    try {
      const { next } = await fetchDetails(run, { values: form.values() }, controller.signal);
      show((next ?? []).filter(({ word }) => word));
    } catch { container.replaceChildren(); }
  }
  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(update, SUGGESTION_DELAY); });
}
