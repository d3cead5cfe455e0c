// A turn of a chat: a message, or an answer.

/**
 * A piece of text, and whether it came from a draft.
 * @typedef {[string, boolean]} Part
 */

/**
 * @typedef {object} Attachment
 * @property {string} name
 * @property {string} [text] of a text file
 * @property {string} [url] of an image: a data URL
 */

/**
 * @typedef {object} Turn
 * @property {string} id
 * @property {string} chat
 * @property {string|null} parent the turn before it
 * @property {"user"|"assistant"} role
 * @property {number} time
 * @property {Part[]} parts
 * @property {Part[]} [thoughts]
 * @property {Attachment[]} [files]
 * @property {string[]} [figures]
 * @property {number} [used] tokens of the context after it
 * @property {boolean} [running] whether it was being generated when it was stored
 */

/** A new identifier. */
export const newId = () => crypto.getRandomValues(new Uint32Array(3)).join("-");

/**
 * @param {string} chat
 * @param {string|null} parent
 * @param {Turn["role"]} role
 * @param {string} [text]
 * @returns {Turn}
 */
export const newTurn = (chat, parent, role, text = "") =>
  ({id: newId(), chat, parent, role, time: Date.now(), parts: text ? [[text, false]] : []});

/** @param {Part[]} parts */
export const joined = parts => parts.map(([text]) => text).join("");

/** The text of a turn, without files and thoughts. @param {Turn} turn */
export const textOf = turn => joined(turn.parts);

/**
 * Add a part, joined with the last one if that is of the same kind.
 * @param {Part[]} parts
 * @param {string} text
 * @param {boolean} drafted
 */
export function append(parts, text, drafted) {
  const last = parts.at(-1);
  if (last && last[1] === drafted) last[0] += text;
  else parts.push([text, drafted]);
}

/** A fence around a text: longer than any run of backticks in it. */
const fence = text =>
  "`".repeat(Math.max(2, ...(text.match(/`+/g) ?? []).map(one => one.length)) + 1);

/** The text of a message with its text files. @param {Turn} turn */
export function withFiles(turn) {
  const files = (turn.files ?? []).filter(one => one.text !== undefined).map(one => {
    const mark = fence(one.text);
    return `${one.name}:\n${mark}\n${one.text.replace(/\n$/, "")}\n${mark}`;
  });
  return [...files, textOf(turn)].filter(Boolean).join("\n\n");
}

/** A turn as a message of a request. @param {Turn} turn */
export function message(turn) {
  const text = withFiles(turn);
  const images = (turn.files ?? []).filter(one => one.url);
  if (!images.length) return {role: turn.role, content: text};
  return {role: turn.role, content: [
    ...images.map(one => ({type: "image_url", image_url: {url: one.url}})),
    {type: "text", text},
  ]};
}
