// The stored chats.

import {change, read} from "./database.js";
import {newId, textOf} from "./turn.js";

/** @typedef {import("./turn.js").Turn} Turn */
/** @typedef {{id: string, title: string, time: number, last: string|null}} Chat */
/** @typedef {{chat: Chat, turns: Turn[], traces: {id: string, chat: string, html: string}[]}} Whole */

/** Notifies other tabs of changes. */
const channel = new BroadcastChannel("specllama");

/** Call a function when another tab has changed a chat. @param {(id: string) => void} action */
export const onChange = action => channel.addEventListener("message", ({data}) => action(data));

/** @returns {Chat} */
export const fresh = () => ({id: newId(), title: "", time: Date.now(), last: null});

/** All chats, the latest first. @returns {Promise<Chat[]>} */
export async function list() {
  const chats = await read("chats", store => store.getAll());
  return chats.sort((one, other) => other.time - one.time);
}

/** @param {string} id @returns {Promise<Chat|undefined>} */
export const chat = id => read("chats", store => store.get(id));

/** The turns of a chat. @param {string} id @returns {Promise<Turn[]>} */
export const turns = id => read("turns", store => store.index("chat").getAll(id));

/** The trace of a turn, as HTML. @param {string} id @returns {Promise<string|undefined>} */
export const trace = async id => (await read("traces", store => store.get(id)))?.html;

/** @param {Turn} turn @param {string} html */
export const keepTrace = (turn, html) =>
  change(store => store("traces").put({id: turn.id, chat: turn.chat, html}));

/** Store a chat and some of its turns. @param {Chat} chat @param {...Turn} turns */
export async function keep(chat, ...turns) {
  await change(store => {
    store("chats").put(chat);
    for (const turn of turns) store("turns").put(turn);
  });
  channel.postMessage(chat.id);
}

/** Store a turn during its generation, without notifying other tabs. @param {Turn} turn */
export const keepTurn = turn => change(store => store("turns").put(turn));

/** Remove a turn. @param {Chat} chat @param {Turn} turn */
export const remove = (chat, turn) => change(store => {
  store("chats").put(chat);
  store("turns").delete(turn.id);
  store("traces").delete(turn.id);
});

/** A chat with its turns and traces. @param {Chat} chat @returns {Promise<Whole>} */
export const whole = async chat => ({
  chat,
  turns: await turns(chat.id),
  traces: await read("traces", store => store.index("chat").getAll(chat.id)),
});

/** Store a chat that `whole` returned. @param {Whole} one */
export async function restore({chat, turns, traces}) {
  await change(store => {
    store("chats").put(chat);
    for (const turn of turns) store("turns").put(turn);
    for (const trace of traces) store("traces").put(trace);
  });
  channel.postMessage(chat.id);
}

/** Remove a chat. @param {Whole} one */
export async function forget({chat, turns, traces}) {
  await change(store => {
    store("chats").delete(chat.id);
    for (const turn of turns) store("turns").delete(turn.id);
    for (const trace of traces) store("traces").delete(trace.id);
  });
  channel.postMessage(chat.id);
}

/** The identifiers of the chats whose turns contain a text. @param {string} text */
export async function withText(text) {
  const wanted = text.toLowerCase();
  const turns = await read("turns", store => store.getAll());
  return new Set(turns.filter(turn => textOf(turn).toLowerCase().includes(wanted))
    .map(turn => turn.chat));
}
