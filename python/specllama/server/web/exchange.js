// Chats as files: JSON with everything that is stored, and Markdown with the visible turns.

import {fresh} from "./chats.js";
import {path} from "./tree.js";
import {newId, newTurn, withFiles} from "./turn.js";

/** @typedef {import("./chats.js").Whole} Whole */

const FORMAT = "specllama chats 1";

/** The headings of turns in Markdown. */
const HEADINGS = {user: "## You", assistant: "## Assistant"};

/** @param {Whole[]} chats */
export const toJson = chats => JSON.stringify({format: FORMAT, chats}, null, 1);

/** The visible turns, as Markdown. @param {Whole} one */
export function toMarkdown({chat, turns}) {
  const shown = path(new Map(turns.map(turn => [turn.id, turn])), chat.last);
  const texts = shown.map(turn => `${HEADINGS[turn.role]}\n\n${withFiles(turn)}\n`);
  return `# ${chat.title}\n\n${texts.join("\n")}`;
}

/**
 * Read a chat from Markdown that `toMarkdown` made. Files become a part of their message.
 * @param {string} text
 * @returns {Whole[]} Throws an Error with a message for the user.
 */
export function fromMarkdown(text) {
  const found = /^# (.*)\n\n(## (?:You|Assistant)\n[^]*)$/.exec(text.replace(/\r\n/g, "\n"));
  const [, title, rest] = found ?? [];
  if (rest === undefined)
    throw Error("The file does not begin with “# Title” and “## You”; choose an exported chat.");
  const chat = {...fresh(), title};
  const turns = rest.split(/^(?=## (?:You|Assistant)\n)/m).map((one, index) => {
    const role = one.startsWith(HEADINGS.user) ? "user" : "assistant";
    const turn = newTurn(chat.id, chat.last, role, one.slice(HEADINGS[role].length).trim());
    chat.last = turn.id;
    return {...turn, time: index};
  });
  return [{chat, turns, traces: []}];
}

const isText = one => typeof one === "string";
const isPart = one => Array.isArray(one) && isText(one[0]) && typeof one[1] === "boolean";
const isList = (value, check) => Array.isArray(value) && value.every(check);
const isOptional = (value, check) => value === undefined || check(value);
const isFile = one => isText(one?.name) && (isText(one.text)
  || /^data:image\/(png|jpeg|gif|webp);base64,/.test(one.url));

const isTurn = one => isText(one?.id) && (one.parent === null || isText(one.parent))
  && ["user", "assistant"].includes(one.role) && isList(one.parts, isPart)
  && isOptional(one.thoughts, value => isList(value, isPart))
  && isOptional(one.files, value => isList(value, isFile))
  && isOptional(one.figures, value => isList(value, isText));

/**
 * Read chats from JSON that `toJson` made. They get new identifiers, so they do not replace stored
 * chats.
 * @param {string} text
 * @returns {Whole[]} Throws an Error with a message for the user.
 */
export function fromJson(text) {
  let given;
  try {
    given = JSON.parse(text);
  } catch {
    throw Error("The file is not JSON; choose a file with exported chats.");
  }
  if (given?.format !== FORMAT || !Array.isArray(given.chats))
    throw Error("The file has no specllama chats; choose a file with exported chats.");
  return given.chats.map(renamed);
}

/** @param {Whole} given @param {number} index @returns {Whole} */
function renamed(given, index) {
  if (!isText(given?.chat?.title) || !isList(given.turns, isTurn))
    throw Error(`Chat ${index + 1} in the file is damaged.`);
  const names = new Map(given.turns.map(turn => [turn.id, newId()]));
  const chat = {...fresh(), title: given.chat.title, time: Number(given.chat.time) || Date.now(),
    last: names.get(given.chat.last) ?? null};
  const turns = given.turns.map(turn => ({
    id: names.get(turn.id), chat: chat.id, parent: names.get(turn.parent) ?? null, role: turn.role,
    time: Number(turn.time) || 0, parts: turn.parts, thoughts: turn.thoughts, files: turn.files,
    figures: turn.figures, used: Number(turn.used) || undefined,
  }));
  const traces = (Array.isArray(given.traces) ? given.traces : [])
    .filter(one => names.has(one?.id) && isText(one.html))
    .map(one => ({id: names.get(one.id), chat: chat.id, html: one.html}));
  return {chat, turns, traces};
}
