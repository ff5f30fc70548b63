// A wide table scrolls inside its frame: let the keyboard scroll it, too. Each landmark has a name of its own.
const reachable = () => {
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((frame, index) => {
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", `Table ${index + 1}`);
  });
  document.querySelectorAll(".md-code__nav").forEach((buttons, index) => buttons.setAttribute("aria-label", `Code ${index + 1}`));
};
new MutationObserver(reachable).observe(document.body, { childList: true, subtree: true });
reachable();
