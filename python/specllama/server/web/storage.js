// Data that the browser stores in addition to chats: settings, the last completion, and the unsent
// text. The API key is never stored.

const SETTINGS = "specllama.settings";
const COMPLETION = "specllama.completion";
const PROMPT = "specllama.prompt";

function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;  // not JSON of ours, or the browser stores nothing
  }
}

function write(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch { /* as above */ }
}

export const settings = () => read(SETTINGS) ?? {};
/** @param {object} values */
export const keepSettings = values => write(SETTINGS, values);

/** The last completion, a turn with its prompt and its trace; null if there is none. */
export const completion = () => read(COMPLETION);
/** @param {object} turn */
export const keepCompletion = turn => write(COMPLETION, turn);

/** The unsent text of this tab. */
export function prompt() {
  try {
    return sessionStorage.getItem(PROMPT) ?? "";
  } catch {
    return "";
  }
}

/** @param {string} text */
export function keepPrompt(text) {
  try {
    sessionStorage.setItem(PROMPT, text);
  } catch { /* as above */ }
}
