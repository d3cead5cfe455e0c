// Colours drafted text, in plain text and in rendered Markdown.

import {make} from "./dom.js";
import {append} from "./turn.js";

/** @typedef {import("./turn.js").Part} Part */

const NEAR = 16;  // characters in which a single character is searched

/** Elements with line breaks between their children that are not in the source. */
const BETWEEN = new Set(["BLOCKQUOTE", "LI", "OL", "TABLE", "TBODY", "THEAD", "TR", "UL"]);

/** Whether a node has text of the source. @param {Text} node @param {Node} root */
const isText = ({data, parentNode}, root) =>
  data !== "\n" || (parentNode !== root && !BETWEEN.has(parentNode.tagName));

const mark = text => make("span", {className: "drafted"}, text);

/** Parts as nodes. @param {Part[]} parts */
export const tinted = parts =>
  parts.map(([text, drafted]) => drafted ? mark(text) : document.createTextNode(text));

/** The drafted ranges of a text, as [begin, end]. @param {Part[]} parts */
export function ranges(parts) {
  const found = [];
  let at = 0;
  for (const [text, drafted] of parts) {
    if (drafted) found.push([at, at + text.length]);
    at += text.length;
  }
  return found;
}

/** Whether a text is one character. */
const isSingle = text => text.length === String.fromCodePoint(text.codePointAt(0)).length;

/** Split a text into pieces to search for, if the whole text was not found. */
function* smaller(text) {
  for (const between of [/(?<=\n)/, /(?<=\s)(?=\S)/, /(?<=[^\p{L}\p{N}])|(?=[^\p{L}\p{N}])/u]) {
    const pieces = text.split(between);
    if (pieces.length > 1) return yield* pieces;
  }
  yield* text;
}

/**
 * Finds the texts of a rendering in its source, one after the other. Each search begins after the
 * last match. The first match is never after the true place, so the next text corrects a wrong one.
 */
class Aligner {
  /** @param {string} source @param {number} at @param {number} end of the part to search */
  constructor(source, at, end) {
    this.source = source;
    this.at = at;
    this.end = end;
    this.missing = new Set();
  }

  #find(text) {
    if (this.missing.has(text)) return -1;
    const end = isSingle(text) ? Math.min(this.at + NEAR, this.end) : this.end;
    const found = this.source.slice(this.at, end).indexOf(text);
    if (found >= 0) return this.at + found;
    if (!isSingle(text)) this.missing.add(text);  // it is not after a later place either
    return -1;
  }

  /** Yield [piece, its place]. A piece that the source writes differently, such as an entity, gets
      the place of the next piece. @param {string} text */
  *places(text) {
    const found = this.#find(text);
    if (found >= 0) this.at = found + text.length;
    if (found >= 0 || isSingle(text)) yield [text, found >= 0 ? found : this.at];
    else for (const piece of smaller(text)) yield* this.places(piece);
  }
}

/**
 * Highlight the drafted texts below a node.
 * @param {Node} root the rendering of a part of the source
 * @param {string} source
 * @param {[number, number]} part offsets of that part
 * @param {[number, number][]} drafted ranges of the source
 */
export function tint(root, source, [begin, end], drafted) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode())
    if (isText(walker.currentNode, root)) nodes.push(walker.currentNode);
  const aligner = new Aligner(source, begin, end);
  let next = 0;  // index of the first drafted range that ends after the place
  for (const node of nodes) {
    const parts = [];
    for (const [piece, place] of aligner.places(node.data)) {
      while (next > 0 && drafted[next - 1][1] > place) --next;
      while (drafted[next]?.[1] <= place) ++next;
      for (let from = 0, range = next; from < piece.length; ) {
        const [open, close] = drafted[range] ?? [Infinity, Infinity];
        const isDrafted = open <= place + from;
        const to = Math.min(piece.length, (isDrafted ? close : open) - place);
        append(parts, piece.slice(from, to), isDrafted);
        if (isDrafted) ++range;
        from = to;
      }
    }
    if (parts.some(([, isDrafted]) => isDrafted)) node.replaceWith(...tinted(parts));
  }
}

