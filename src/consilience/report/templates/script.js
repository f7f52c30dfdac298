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
    const marked = controls.querySelector("[data-marked]");
    const output = controls.querySelector("output");
    const targets = [...document.querySelectorAll(search.dataset.filters)];
    const apply = () => {
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
})();
