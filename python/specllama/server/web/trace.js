// The picture of a trace, as drawn by the server, made usable without a mouse.

/** Return an element that shows a trace. Below it stands what hovering over a token would show: for
    the token that was tapped or reached by the arrow keys. */
export function picture(html) {
  const box = document.createElement("div");
  box.className = "trace";
  box.innerHTML = html;  // safe: our server escapes every text in it
  const told = document.createElement("output");
  told.textContent = "Tap a token, or go to it with the arrow keys, to see where it came from.";
  box.append(told);
  const tokens = [...box.querySelectorAll(".round [title]")];
  let current = -1;
  const go = index => {
    if (!tokens[index]) return;
    tokens[current]?.removeAttribute("data-current");
    current = index;
    tokens[current].dataset.current = "";
    tokens[current].scrollIntoView({block: "nearest"});
    told.textContent = tokens[current].title;
    told.scrollIntoView({block: "nearest"});
  };
  const text = box.querySelector(".text");
  text.tabIndex = 0;
  text.setAttribute("role", "group");
  text.setAttribute("aria-label", "Tokens; the arrow keys go from one to the next");
  text.addEventListener("click", event => go(tokens.indexOf(event.target.closest("[title]"))));
  text.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10}[event.key];
    const edge = {Home: 0, End: tokens.length - 1}[event.key];
    if (step === undefined && edge === undefined) return;
    event.preventDefault();
    go(edge ?? Math.min(Math.max(current + step, 0), tokens.length - 1));
  });
  return box;
}
