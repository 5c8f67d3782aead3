"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Light and dark: the system's choice until the button is used.
  const button = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
  prefersDark.addEventListener("change", name);
  name();

  // Sorting: numbers by size, words by alphabet, rows without a value in the column last.
  const keyOf = (row, column) => {
    let at = 0;
    for (const cell of row.cells) {
      if (at === column) return cell.colSpan > 1 ? "" : (cell.dataset.sort ?? "");
      at += cell.colSpan;
    }
    return "";
  };
  const compare = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
  };
  const sort = (heading) => {
    const table = heading.closest("table");
    const up = heading.ariaSort !== "ascending";
    all("th[aria-sort]", table).forEach((other) => { other.ariaSort = "none"; });
    heading.ariaSort = up ? "ascending" : "descending";
    const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row, heading.cellIndex), row]);
    rows.sort(([a], [b]) => {
      if (a === "" || b === "") return (a === "") - (b === "");
      return up ? compare(a, b) : compare(b, a);
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  };
  all("th[aria-sort] button").forEach((head) => {
    head.addEventListener("click", () => sort(head.closest("th")));
  });

  // A table that is wider than its box says so.
  const tell = (box) => { box.previousElementSibling.hidden = box.scrollWidth <= box.clientWidth + 1; };
  const boxes = all(".wide + .scroll");
  const observer = new ResizeObserver((entries) => entries.forEach((entry) => tell(entry.target)));
  boxes.forEach((box) => observer.observe(box));

  // Under the pointer: the figures of a mark; the line of a name, or of a mark.
  const tip = document.getElementById("tip");
  const show = (event) => {
    const mark = event.target.closest("[data-tip]");
    tip.textContent = mark ? mark.dataset.tip : "";
    if (!mark) return;
    const left = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8);
    const above = event.clientY - tip.offsetHeight - 12;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 0 ? above : event.clientY + 16}px`;
  };
  const highlight = (event) => {
    const figure = event.target.closest("figure");
    const line = event.target.closest("[data-line]")?.dataset.line;
    all("figure .faded").forEach((other) => other.classList.remove("faded"));
    if (!figure || line === undefined) return;
    all(`[data-line]:not([data-line="${line}"])`, figure).forEach((other) => other.classList.add("faded"));
  };
  document.addEventListener("pointerover", (event) => { show(event); highlight(event); });
  document.addEventListener("pointerdown", show);
  addEventListener("scroll", () => { tip.textContent = ""; }, { passive: true });

  // The data as files.
  all("[data-download]").forEach((button) => {
    button.addEventListener("click", () => {
      const text = document.getElementById(button.dataset.download).textContent;
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
      link.download = button.dataset.name;
      link.click();
      URL.revokeObjectURL(link.href);
    });
  });
})();
