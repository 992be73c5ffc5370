// The page: a run, its form, one pane or two, history and link.

const app = { runs: [], run: null, other: null, form: null, panes: [], input: null, examples: [], turn: 0 };

function showError(error) {
  const isShown = Boolean(error) && error.name !== "AbortError";
  $("error").hidden = !isShown;
  $("error").textContent = isShown ? error.message : "";
}

// --- runs

const isCompatible = (run, other) => other !== run
  && JSON.stringify(run.fields.map(({ name, kind }) => [name, kind])) === JSON.stringify(other.fields.map(({ name, kind }) => [name, kind]));

function showRun(name, otherName = null) {
  const run = app.runs.find((candidate) => candidate.name === name) ?? app.runs[0];
  app.run = run;
  $("run").value = run.name;
  $("about").textContent = `${run.model}, ${run.parameters.toLocaleString("en")} parameters, task ${run.task}`;
  app.form = createForm(run, { onsubmit: () => submit() });
  $("fields").replaceChildren(...app.form.nodes);
  $("go").hidden = !run.fields.length;
  $("no-fields").hidden = run.fields.length > 0;
  attachSuggestions(run, app.form, $("suggestions"));
  const others = app.runs.filter((other) => isCompatible(run, other));
  $("other").replaceChildren(make("option", { value: "" }, "no other run"), ...others.map((other) => make("option", { value: other.name }, other.name)));
  $("other-label").hidden = !others.length;
  showOther(otherName);
  showError(null);
  fillHistory();
  fillExamples();
}

function showOther(name) {
  const other = app.runs.find((candidate) => candidate.name === name && isCompatible(app.run, candidate)) ?? null;
  app.other = other;
  $("other").value = other?.name ?? "";
  const runs = other ? [app.run, other] : [app.run];
  while (app.panes.length < runs.length) app.panes.push(createPane({ onerror: showError, onstate: saveLink }));
  runs.forEach((run, index) => app.panes[index].setRun(run, runs.length > 1));
  $("panes").replaceChildren(...app.panes.slice(0, runs.length).map((pane) => pane.node));
  $("main").dataset.panes = runs.length;
}

const shownPanes = () => app.panes.slice(0, app.other ? 2 : 1);

// --- prediction

async function submit() {
  const missing = app.form.missing();
  if (missing) {
    showError(new Error(`${missing.label}: the input is missing`));
    app.form.focus();
    return;
  }
  await predict({ values: app.form.values() });
}

async function predict(input) {
  const turn = ++app.turn;
  showError(null);
  app.input = input;
  $("stop").hidden = false;
  saveLink();
  try {
    const [prediction] = await Promise.all(shownPanes().map((pane) => pane.predict(input)));
    if (input.values && turn === app.turn) {
      inputHistory(app.run, input.values);
      fillHistory();
      app.form.answered(prediction, input.values);
    }
  } catch (error) {
    if (turn === app.turn) showError(error);
  } finally { if (turn === app.turn) $("stop").hidden = true; }
}

// --- examples, history, link

async function fillExamples() {
  const { run } = app;
  $("examples").replaceChildren(make("option", { value: "" }, "Examples"));
  $("examples").disabled = true;
  try {
    const examples = await getJson(runPath(run, "examples"));
    if (run !== app.run) return;
    app.examples = examples;
    $("examples").append(...examples.map((example, index) => make("option", { value: index },
      Object.keys(example.values).length ? inputTitle(example.values, index) : `Example ${index + 1}`)));
    $("examples").disabled = !examples.length;
    const [first] = examples;
    if (!app.input && first && !app.form.isTouched()) app.form.write(first.values);
  } catch { app.examples = []; } // a run without its data has no examples
}

function takeExample(index) {
  const { values } = app.examples[index];
  if (Object.keys(values).length) {
    app.form.write(values);
    return predict({ values: app.form.values() });
  }
  return predict({ example: app.examples[index].index });
}

function fillHistory() {
  const entries = inputHistory(app.run);
  $("history").replaceChildren(make("option", { value: "" }, "History"),
    ...entries.map((values, index) => make("option", { value: index }, inputTitle(values, index))));
  $("history").disabled = !entries.length;
}

function saveLink() {
  const view = app.panes[0]?.view ?? {};
  writeLink({ run: app.run.name, other: app.other?.name, input: app.input?.values, example: app.input?.example,
    layer: view.layer, head: view.head, words: view.words });
}

async function copyLink() {
  saveLink();
  await navigator.clipboard.writeText(location.href);
  announce("The link is on the clipboard");
  confirmOn($("link"), "Copied");
}

// --- light and dark

const THEME_KEY = "regard-theme";

function setTheme(name) {
  if (name) document.documentElement.dataset.theme = name;
  try { if (name) localStorage.setItem(THEME_KEY, name); } catch { /* a browser may forbid storage */ }
}

function toggleTheme() {
  const isDark = getComputedStyle(document.documentElement).colorScheme.includes("dark");
  setTheme(isDark ? "light" : "dark");
}

// --- start

async function start() {
  try { setTheme(localStorage.getItem(THEME_KEY)); } catch { /* a browser may forbid storage */ }
  app.runs = await getJson("/api/runs");
  $("run").append(...app.runs.map((run) => make("option", { value: run.name }, run.name)));
  const link = readLink();
  app.input = link.input ? { values: link.input } : null;
  showRun(link.run, link.other);
  const { layer, head, words } = link;
  if (layer !== null) app.panes[0].view = { layer, head, words: words ?? true };
  if (link.input) {
    app.form.write(link.input);
    await predict({ values: link.input });
  } else if (Number.isInteger(link.example)) await predict({ example: link.example });
  document.body.dataset.ready = "yes";
}

$("run").addEventListener("change", () => {
  app.input = null;
  showRun($("run").value);
  saveLink();
});
$("other").addEventListener("change", () => {
  const { input } = app;
  showOther($("other").value);
  if (input) predict(input);
  else saveLink();
});
$("form").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
$("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); submit(); }
});
$("form").addEventListener("restart", () => { app.input = null; showOther(app.other?.name); });
$("stop").addEventListener("click", () => shownPanes().forEach((pane) => pane.stop()));
$("examples").addEventListener("change", () => {
  const index = $("examples").value;
  $("examples").value = "";
  if (index !== "") takeExample(Number(index));
});
$("history").addEventListener("change", () => {
  const index = $("history").value;
  $("history").value = "";
  if (index === "") return;
  app.form.write(inputHistory(app.run)[index]);
  submit();
});
$("link").addEventListener("click", () => copyLink().catch(showError));
$("theme").addEventListener("click", toggleTheme);
start().catch(showError);
