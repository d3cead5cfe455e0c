// The turns of a chat as a tree: each version of a message or an answer is a branch.

/** @typedef {import("./turn.js").Turn} Turn */
/** @typedef {Map<string, Turn>} Turns */

/**
 * The turns from the first one to `last`.
 * @param {Turns} turns
 * @param {string|null} last
 * @returns {Turn[]}
 */
export function path(turns, last) {
  const found = [];
  const seen = new Set();
  for (let turn = turns.get(last); turn && !seen.has(turn.id); turn = turns.get(turn.parent)) {
    seen.add(turn.id);
    found.push(turn);
  }
  return found.reverse();
}

/** The versions of a turn, including itself, the oldest first. @param {Turns} turns */
export const versions = (turns, turn) => children(turns, turn.parent);

/** @param {Turns} turns @param {string|null} id */
const children = (turns, id) => [...turns.values()].filter(one => one.parent === id)
  .sort((one, other) => one.time - other.time);

/** The last turn of the newest branch after a turn. @param {Turns} turns @param {Turn} turn */
export function latest(turns, turn) {
  const seen = new Set();  // the turns of a damaged chat may form a circle
  for (let next = turn; next && !seen.has(next); next = children(turns, turn.id).at(-1)) {
    seen.add(next);
    turn = next;
  }
  return turn.id;
}
