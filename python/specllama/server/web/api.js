// The requests that the page makes to the server.

const headers = key =>
  ({"Content-Type": "application/json", ...(key && {Authorization: `Bearer ${key}`})});

/** The error message if the server cannot be reached. */
export const SILENT = "The server is not responding.";

async function ask(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw Error(SILENT);
  }
}

/** Return the models; null if the key is missing or wrong. */
export async function models(key) {
  const response = await ask("/v1/models", {headers: headers(key)});
  return response.status === 401 ? null : (await response.json()).data;
}

/** Return a model's properties: its slots, and the modalities that it reads. */
export async function properties(model, key) {
  const response = await ask(`/props?model=${encodeURIComponent(model)}`, {headers: headers(key)});
  return response.ok ? response.json() : {};
}

/** Return the numbers of running and waiting requests. */
export const load = async () => (await ask("/health")).json();

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    const parts = (text + value).split("\n\n");
    text = parts.pop();
    for (const part of parts)
      if (part.startsWith("data: {")) yield JSON.parse(part.slice("data: ".length));
  }
}

const pathOf = body => "messages" in body ? "/v1/chat/completions" : "/v1/completions";

/** End a generation; its text so far becomes the whole answer. Return whether that worked. */
export async function cancel(body, id, key) {
  const path = `${pathOf(body)}/${id}/cancel`;
  try {
    return (await ask(path, {method: "POST", headers: headers(key)})).ok;
  } catch {
    return false;
  }
}

/**
 * Generate an answer to the body's messages if it has any, else a continuation of its prompt.
 *
 * Yields {id} first, {text, drafted, isThought} for each token, {reason, trace} at the end, and
 * {usage, timings}; {timings} earlier too if the body asks for them.
 */
export async function* generate(body, key, signal) {
  const chat = "messages" in body;
  const wanted = {...body, stream: true, stream_options: {include_usage: true}, trace_html: true};
  const response = await ask(pathOf(body),
    {method: "POST", headers: headers(key), body: JSON.stringify(wanted), signal});
  if (!response.ok) throw Error((await response.json()).error.message);
  let id = null;
  for await (const event of events(response)) {
    if (event.error) throw Error(event.error.message);
    if (id === null) yield {id: id = event.id};
    if (event.timings) yield {usage: event.usage, timings: event.timings};
    const choice = event.choices[0];
    if (!choice || choice.delta?.role) continue;
    if (choice.finish_reason) yield {reason: choice.finish_reason, trace: choice.trace_html};
    else yield {...textPart(choice, chat), drafted: !!choice.from_draft};
  }
}

/** The text of a part of a stream, and whether it is a thought. */
function textPart(choice, chat) {
  if (!chat) return {text: choice.text};
  const {content, reasoning_content: thought} = choice.delta;
  return {text: thought ?? content ?? "", isThought: thought !== undefined};
}
