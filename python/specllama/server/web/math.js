// Formulas in Markdown. They stay plain text.

const LONGEST = 2000;  // characters of a formula; limits the search after a single mark

/** The marks that open and close a formula. */
const MARKS = [["$$", "$$"], ["\\[", "\\]"], ["\\(", "\\)"], ["$", "$"]];

/**
 * Return the end of the formula that begins at an index; -1 if there is none.
 * @param {string} text
 * @param {number} begin
 */
function endOf(text, begin) {
  const marks = MARKS.find(([open]) => text.startsWith(open, begin));
  if (!marks) return -1;
  const [open, close] = marks;
  const from = begin + open.length;
  const length = text.slice(from, from + LONGEST).indexOf(close);
  if (length < 1) return -1;
  const end = from + length + close.length;
  // Two prices in a sentence are not a formula.
  const isPrice = open === "$" && (/\s/.test(text[from]) || /\s/.test(text[from + length - 1])
    || /\d/.test(text[end] ?? ""));
  return isPrice ? -1 : end;
}

/** Formulas on their own lines, where a minus does not begin a list. */
function lines(state, begin, last, silent) {
  const from = state.bMarks[begin] + state.tShift[begin];
  const close = {"$$": "$$", "\\[": "\\]"}[state.src.slice(from, from + 2)];
  if (!close) return false;
  for (let line = begin; line < last && state.bMarks[line] - from < LONGEST; ++line) {
    const start = line === begin ? from + 2 : state.bMarks[line];
    if (!state.src.slice(start, state.eMarks[line]).trimEnd().endsWith(close)) continue;
    if (silent) return true;
    const token = state.push("math_block", "", 0);
    token.map = [begin, line + 1];
    token.content = state.getLines(begin, line + 1, state.blkIndent, false);
    state.line = line + 1;
    return true;
  }
  return false;
}

/** Add the rules to a parser. @param {object} parser of markdown-it */
export function math(parser) {
  parser.block.ruler.before("fence", "math", lines, {alt: ["paragraph", "blockquote", "list"]});
  parser.inline.ruler.before("escape", "math", (state, silent) => {
    const end = endOf(state.src, state.pos);
    if (end < 0 || end > state.posMax) return false;
    if (!silent) state.push("math", "", 0).content = state.src.slice(state.pos, end);
    state.pos = end;
    return true;
  });
  const show = tag => (tokens, index) =>
    `<${tag} class="math">${parser.utils.escapeHtml(tokens[index].content)}</${tag}>`;
  parser.renderer.rules.math = show("span");
  parser.renderer.rules.math_block = show("p");
}
