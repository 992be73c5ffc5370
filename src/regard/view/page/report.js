// Tables of a report: a click on a header sorts by its column, a second click the other way.

const cellNumber = (cell) => parseFloat(cell.textContent.replace(/,/g, ""));

function sortTable(header) {
  const table = header.closest("table");
  const isUp = header.getAttribute("aria-sort") === "descending";
  for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", isUp ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => {
    const cells = [a.cells[header.cellIndex], b.cells[header.cellIndex]];
    const [x, y] = cells.map(cellNumber);
    const byName = cells[0].textContent.localeCompare(cells[1].textContent);
    const order = isNaN(x) && isNaN(y) ? byName : isNaN(x) ? -1 : isNaN(y) ? 1 : x - y;
    return isUp ? order : -order;
  });
  table.tBodies[0].append(...rows);
}

for (const button of document.querySelectorAll(".report th button")) {
  button.addEventListener("click", () => sortTable(button.parentElement));
}
