"use strict";
const tools = document.querySelector(".tools");
const [search, onlyUnmet] = tools.querySelectorAll("input");
tools.hidden = false;

search.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of document.querySelectorAll("details")) {
    const text = row.querySelector(".clause").textContent.toLowerCase();
    row.classList.toggle("unfound", !words.every((word) => text.includes(word)));
  }
});

onlyUnmet.addEventListener("change", () => {
  document.body.classList.toggle("only-unmet", onlyUnmet.checked);
});

// A link to a clause opens it.
const openTarget = () => {
  const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (row instanceof HTMLDetailsElement) row.open = true;
};
window.addEventListener("hashchange", openTarget);
openTarget();
