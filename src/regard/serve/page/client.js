// Requests to the server of this page.

async function request(path, body, signal) {
  const options = body === undefined ? { signal } : {
    method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body), signal,
  };
  const response = await fetch(path, options);
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  throw new Error(answer.error?.message ?? `the server answers with status ${response.status}`);
}

const getJson = async (path) => (await request(path)).json();

const runPath = (run, action) => `/api/runs/${encodeURIComponent(run.name)}/${action}`;

// An input of the page is {values}, the fields of a form, or {example}, a number.
// A prefix is how the output begins.
const inputBody = ({ values, example, prefix }) =>
  ({ ...(values ? { input: values } : { example }), ...(prefix ? { prefix } : {}) });

// Predict for one input; `onText` gets the text as far as it is written.
async function streamPrediction(run, { values, example, prefix }, { signal, onText }) {
  const body = { ...(values ? { inputs: [values] } : { examples: [example] }), stream: true };
  if (prefix) body.prefix = prefix;
  const response = await request(runPath(run, "predict"), body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "", prediction = null;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    buffer += value;
    const events = buffer.split("\n\n");
    buffer = events.pop();
    for (const event of events) {
      const kind = /^event: (.*)$/m.exec(event)?.[1];
      const data = JSON.parse(/^data: (.*)$/m.exec(event)[1]);
      if (kind === "error") throw new Error(data.error.message);
      if (kind === "prediction") prediction = data;
      else onText(data.text);
    }
  }
  if (prediction === null) throw new Error("the server has closed the connection; try again");
  return prediction;
}

async function fetchAttention(run, input, signal) {
  const body = { ...inputBody(input), format: "viewer" };
  return (await request(runPath(run, "attention"), body, signal)).json();
}

async function fetchDetails(run, { values, example }, signal) {
  return (await request(runPath(run, "details"), inputBody({ values, example }), signal)).json();
}

async function fetchCounterfactual(run, input, edits) {
  return (await request(runPath(run, "counterfactual"), { ...inputBody(input), ...edits })).json();
}
