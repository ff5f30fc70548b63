// A wide table scrolls inside its frame: let the keyboard scroll it, too.
const reachable = () =>
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((frame) => {
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", "Table");
  });
new MutationObserver(reachable).observe(document.body, { childList: true, subtree: true });
reachable();
