// What the browser stores: settings, the last completion, and each conversation and each trace under
// a key of its own. Never the API key.

const CHAT = "specllama.chat.";
const TRACE = "specllama.trace.";
const COMPLETION = "specllama.completion";
const SETTINGS = "specllama.settings";
const PROMPT = "specllama.prompt";

function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;  // not JSON of ours, or the browser stores nothing
  }
}

function remove(key) {
  try {
    localStorage.removeItem(key);
  } catch { /* as above */ }
}

function keys(prefix) {
  try {
    return Object.keys(localStorage).filter(key => key.startsWith(prefix));
  } catch {
    return [];
  }
}

/** Store a value; return whether there was room. Traces make room for it, those of the oldest
    conversation first; conversations never do. */
function write(key, value) {
  const text = JSON.stringify(value);
  const owners = [...chats().map(chat => chat.id), COMPLETION];
  for (;;) {
    try {
      localStorage.setItem(key, text);
      return true;
    } catch {
      const traces = keys(TRACE).filter(one => one !== key);
      if (!traces.length) return false;
      const last = owners.pop();  // traces of no conversation come at the end
      const own = last === undefined ? traces : traces.filter(one => one.startsWith(TRACE + last));
      own.forEach(remove);
    }
  }
}

const random = () => crypto.getRandomValues(new Uint32Array(2)).join("");

/** Return the conversations, the latest first: {id, time, turns, replaced}. A turn is {role, parts,
    figures, trace, running}. `replaced`: the turns in whose place the last two came. */
export const chats = () => keys(CHAT).map(read).filter(chat => chat?.turns?.length)
  .sort((one, other) => other.time - one.time);

export const fresh = () => ({id: random(), turns: []});
export const chat = id => read(CHAT + id);
export const isChat = key => key === null || key.startsWith(CHAT);

/** Store a conversation, and forget traces that it no longer has. Return whether there was room. */
export function keep(chat) {
  const traces = [...chat.turns, ...(chat.replaced ?? [])].map(turn => turn.trace);
  keys(`${TRACE}${chat.id}.`).filter(key => !traces.includes(key)).forEach(remove);
  return write(CHAT + chat.id, {...chat, time: Date.now()});
}

export function forget(chat) {
  remove(CHAT + chat.id);
  keys(`${TRACE}${chat.id}.`).forEach(remove);
}

/** Store a trace of a conversation (null: of the completion) and return its key; undefined: there
    was no room. */
export function keepTrace(chat, html) {
  const key = `${TRACE}${chat?.id ?? COMPLETION}.${random()}`;
  return write(key, html) ? key : undefined;
}

export const trace = read;

/** Return the last completion, a turn with its prompt; null: there is none. */
export const completion = () => read(COMPLETION);

export function keepCompletion(turn) {
  keys(`${TRACE}${COMPLETION}.`).filter(key => key !== turn.trace).forEach(remove);
  return write(COMPLETION, turn);
}

export const settings = () => read(SETTINGS) ?? {};
export const keepSettings = values => write(SETTINGS, values);

/** Return what was written but not sent in this tab. */
export function prompt() {
  try {
    return sessionStorage.getItem(PROMPT) ?? "";
  } catch {
    return "";
  }
}

export function keepPrompt(text) {
  try {
    sessionStorage.setItem(PROMPT, text);
  } catch { /* as above */ }
}

/** Return the text of a turn, joined from its parts. */
export const text = turn => turn.parts.map(([part]) => part).join("");
