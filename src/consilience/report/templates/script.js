"use strict";
(() => {
  // Sort a table by the keys of a column: numbers as numbers, anything else as text; a second click turns it round.
  const sort = (table, column) => {
    const heading = table.tHead.rows[0].cells[column];
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const numeric = heading.classList.contains("number");
    const key = (row) => row.cells[column].dataset.key ?? row.cells[column].textContent;
    const compare = numeric
      ? (left, right) => Number(key(left)) - Number(key(right))
      : (left, right) => key(left).localeCompare(key(right), undefined, { numeric: true });
    const rows = [...table.tBodies[0].rows].sort(compare);
    if (down) rows.reverse();
    table.tBodies[0].append(...rows);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((cell, column) =>
      cell.querySelector("button").addEventListener("click", () => sort(table, column)));
  }
  // Hide what does not contain the text that was typed, and what is not marked where only that is asked for.
  for (const controls of document.querySelectorAll(".controls")) {
    const search = controls.querySelector("[data-filters]");
    if (!search) continue;
    const marked = controls.querySelector("[data-marked]");
    const output = controls.querySelector("output");
    const targets = [...document.querySelectorAll(search.dataset.filters)];
    const more = document.querySelector(`${search.dataset.filters.split(" ")[0]} details.more`);
    const apply = () => {
      if (more && search.value) more.open = true;
      const wanted = search.value.trim().toLocaleLowerCase();
      let shown = 0;
      for (const target of targets) {
        const fits = target.textContent.toLocaleLowerCase().includes(wanted)
          && (!marked || !marked.checked || target.classList.contains("marked"));
        target.hidden = !fits;
        shown += fits ? 1 : 0;
      }
      output.textContent = shown === targets.length ? "" : `${shown} of ${targets.length}`;
    };
    search.addEventListener("input", apply);
    if (marked) marked.addEventListener("change", apply);
  }
  // Say what a threshold of confidence would keep.
  const threshold = document.getElementById("threshold");
  const numbers = (name) => threshold.dataset[name].split(" ").map(Number);
  const percent = (share) => `${Math.round(1000 * share) / 10}%`;
  const tell = () => {
    const [kept, mean] = [numbers("kept"), numbers("mean")];
    const level = Number(threshold.value);
    const count = Math.round(kept[level] * Number(threshold.dataset.count)).toLocaleString("en");
    document.getElementById("kept").textContent =
      `${(level / 100).toFixed(2)}: keeps ${percent(kept[level])} of the items (${count}) at ${
        threshold.dataset.means.startsWith("e") ? "an" : "a"} ${threshold.dataset.means} of ${percent(mean[level])}`;
  };
  if (threshold) { threshold.addEventListener("input", tell); tell(); }
  // A link to an item that is folded away opens the fold.
  const unfold = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    const fold = target && target.closest("details");
    if (fold) { fold.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", unfold);
  unfold();
})();
