// A wide table scrolls inside its frame: let the keyboard scroll it, too. Each landmark has a name of its own.
const reachable = () => {
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((frame, index) => {
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", `Table ${index + 1}`);
  });
  // The theme gives the list of a section with a page of its own a label without text.
  document.querySelectorAll(".md-nav[aria-labelledby]").forEach((list) => {
    list.setAttribute("aria-label", `${list.querySelector(".md-nav__title").textContent.trim()}: pages`); // a heading may be called the same
    list.removeAttribute("aria-labelledby");
  });
  document.querySelectorAll(".md-code__nav").forEach((buttons, index) => buttons.setAttribute("aria-label", `Code ${index + 1}`));
};
new MutationObserver(reachable).observe(document.body, { childList: true, subtree: true });
reachable();
