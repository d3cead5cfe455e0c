// What the browser stores: settings, and each conversation under its own key. Never the API key.

const PREFIX = "specllama.chat.";
const SETTINGS = "specllama.settings";

function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;  // not JSON of ours, or the browser stores nothing
  }
}

function write(key, value) {
  for (;;) {
    try {
      localStorage.setItem(key, JSON.stringify(value));
      return;
    } catch {  // the storage is full: drop the oldest conversation
      const oldest = chats().pop();
      if (!oldest || PREFIX + oldest.id === key) return;
      forget(oldest);
    }
  }
}

/** Return the conversations, the latest first: {id, time, turns: [{role, parts}]}. */
export function chats() {
  let keys = [];
  try {
    keys = Object.keys(localStorage);
  } catch { /* as above */ }
  return keys.filter(key => key.startsWith(PREFIX)).map(read)
    .filter(chat => chat?.turns?.length).sort((one, other) => other.time - one.time);
}

export const fresh = () => ({id: crypto.getRandomValues(new Uint32Array(2)).join(""), turns: []});

export function keep(chat) {
  chat.time = Date.now();
  write(PREFIX + chat.id, chat);
}

export function forget(chat) {
  try {
    localStorage.removeItem(PREFIX + chat.id);
  } catch { /* as above */ }
}

export const settings = () => read(SETTINGS) ?? {};
export const keepSettings = values => write(SETTINGS, values);

/** Return the text of a turn, joined from its parts. */
export const text = turn => turn.parts.map(([part]) => part).join("");
