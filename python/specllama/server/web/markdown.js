// Converts Markdown to elements. The text is untrusted: the result has no scripts, styles or
// images, and its links lead to the web only.

import {math} from "./math.js";

const DEEPEST = 30;  // levels of quotes and lists
const LONGEST_CODE = 100_000;  // characters that are highlighted
const LONGEST_OPEN = 4000;  // characters that are highlighted while the code grows

const TAGS = ["a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6",
  "hr", "li", "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr",
  "ul"];
const ATTRIBUTES = ["class", "href", "start"];
const CLEAN = {ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ATTRIBUTES, ALLOWED_URI_REGEXP: /^(https?|mailto):/i,
  ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, RETURN_DOM_FRAGMENT: true};

const {hljs, markdownit, DOMPurify} = globalThis;

const parser = markdownit({html: false, breaks: true, highlight}).use(math);
const escape = parser.utils.escapeHtml;

function highlight(code, language) {
  if (code.length > LONGEST_CODE || !hljs.getLanguage(language)) return "";
  return hljs.highlight(code, {language, ignoreIllegals: true}).value;
}

parser.validateLink = url => /^(https?|mailto):/i.test(url.trim());

// An image would be loaded from another server, so it becomes a link.
parser.renderer.rules.image = (tokens, index) => {
  const {attrs, content} = tokens[index];
  const url = Object.fromEntries(attrs).src;
  return `<a href="${escape(url)}">${escape(content || url)}</a>`;
};

// Alignment as a class: styles are not allowed.
for (const name of ["th_open", "td_open"])
  parser.renderer.rules[name] = (tokens, index) => {
    const side = /text-align:(\w+)/.exec(tokens[index].attrGet("style") ?? "")?.[1];
    return `<${tokens[index].tag}${side ? ` class="${side}"` : ""}>`;
  };

// Deeper levels stay plain text: they are not readable, and browsers lay them out slowly.
parser.block.ruler.before("table", "deep", (state, begin, end) => {
  if (state.level < DEEPEST) return false;
  const [open, inline, close] =
    [["paragraph_open", "p", 1], ["text", "", 0], ["paragraph_close", "p", -1]]
      .map(one => state.push(...one));
  open.map = [begin, end];
  inline.content = state.getLines(begin, end, state.blkIndent, false);
  close.block = true;
  state.line = end;
  return true;
});

/** Offsets at which the lines of a text begin, and its length. @param {string} text */
function lineStarts(text) {
  const starts = [0];
  for (const {index, 0: mark} of text.matchAll(/\r\n|\r|\n/g)) starts.push(index + mark.length);
  if (starts.at(-1) !== text.length) starts.push(text.length);
  return starts;
}

/**
 * A part of a text that can be rendered by itself: a paragraph, a list, a code block.
 * @typedef {object} Block
 * @property {number} begin offset in the text
 * @property {number} end
 * @property {boolean} isCertain whether its first line is complete, so it begins here
 * @property {(isOpen: boolean) => DocumentFragment} render isOpen: whether it may still grow
 */

/**
 * Split a text into blocks.
 * @param {string} text
 * @param {object} [links] the definitions of links found so far; new ones are added
 * @returns {Block[]}
 */
export function blocks(text, links = {}) {
  const tokens = parser.parse(text, links);
  const starts = lineStarts(text);
  const found = [];
  let first = 0;
  tokens.forEach((token, index) => {
    if (token.level > 0 || token.nesting > 0) return;
    const group = tokens.slice(first, index + 1);
    first = index + 1;
    const [from, to] = group[0].map;
    const begin = starts[from], end = starts[to] ?? text.length;
    const plain = {...parser.options, highlight: null};
    found.push({
      begin,
      end,
      isCertain: starts[from + 1] !== undefined && /[\r\n]/.test(text[starts[from + 1] - 1]),
      render: isOpen => clean(parser.renderer.render(
        group, isOpen && end - begin > LONGEST_OPEN ? plain : parser.options, links)),
    });
  });
  return found;
}

/** @param {string} html @returns {DocumentFragment} */
function clean(html) {
  const fragment = DOMPurify.sanitize(html, CLEAN);
  for (const link of fragment.querySelectorAll("a[href]")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
  }
  return fragment;
}
