"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const filter = document.getElementById("filter");

  // ---- The table of pairs ----
  function written(value, column) {
    if (value === null) return "";
    return column.text ? value : (value * column.scale).toFixed(column.digits);
  }

  function nameCell(name) {
    const cell = document.createElement("th");
    cell.scope = "row";
    cell.title = name;
    const anchor = Object.hasOwn(data.anchors, name) ? data.anchors[name] : null;
    if (anchor === null) {
      cell.textContent = name;
    } else {
      const link = cell.appendChild(document.createElement("a"));
      link.href = "#" + anchor;
      link.textContent = name;
    }
    return cell;
  }

  const failed = data.failed;
  const rows = data.rows.map((values) => {
    const line = document.createElement("tr");
    values.forEach((value, index) => {
      const column = data.columns[index];
      const cell = index === 0 ? nameCell(value) : document.createElement("td");
      if (index > 0) cell.textContent = written(value, column);
      if (column.text && index > 0) cell.title = value;
      cell.className = "g-" + column.group + (column.text ? " name" : "");
      line.append(cell);
    });
    if (values[failed]) line.className = "failed";
    return { line, values, name: values[0].toLowerCase() };
  });

  let turn = 0;
  function fill() {
    // What can be seen comes at once; laying out a thousand rows takes a moment.
    const lines = rows.map((row) => row.line);
    const mine = ++turn;
    body.replaceChildren(...lines.slice(0, 60));
    setTimeout(() => {
      if (mine === turn) body.append(...lines.slice(60));
    }, 30);
  }
  fill();

  const empty = (value) => value === null || value === "";
  const letters = new Intl.Collator("en", { numeric: true });

  function compare(a, b, text, sign) {
    // What is empty stays last in both directions.
    if (empty(a) || empty(b)) return empty(a) - empty(b);
    return sign * (text ? letters.compare(a, b) : a - b);
  }

  const heads = [...table.tHead.rows[0].cells];
  function sortBy(index) {
    const up = heads[index].getAttribute("aria-sort") !== "ascending";
    heads.forEach((head) => head.setAttribute("aria-sort", "none"));
    heads[index].setAttribute("aria-sort", up ? "ascending" : "descending");
    const text = data.columns[index].text;
    rows.sort((a, b) => compare(a.values[index], b.values[index], text, up ? 1 : -1));
    fill();
  }
  heads.forEach((head, index) => {
    head.firstElementChild.addEventListener("click", () => sortBy(index));
  });

  function applyFilter() {
    const wanted = filter.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      const shown = row.name.includes(wanted);
      row.line.hidden = !shown;
      count += shown;
    }
    const all = rows.length + (rows.length === 1 ? " pair" : " pairs");
    document.getElementById("count").value = count === rows.length ? all : count + " of " + all;
  }
  filter.addEventListener("input", applyFilter);

  const boxes = document.querySelectorAll("input[name=group]");
  function applyGroups() {
    boxes.forEach((box) => table.classList.toggle("hide-" + box.value, !box.checked));
  }
  boxes.forEach((box) => box.addEventListener("change", applyGroups));
  // Browsers remember forms over a reload.
  applyFilter();
  applyGroups();

  // ---- The charts ----
  const tip = document.getElementById("tip");
  function showTip(event) {
    const text = event.target.dataset ? event.target.dataset.tip : undefined;
    tip.hidden = text === undefined;
    if (tip.hidden) return;
    tip.textContent = text;
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const above = event.clientY - tip.offsetHeight - 12;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = (above < 4 ? event.clientY + 18 : above) + "px";
  }
  document.querySelectorAll(".chart svg").forEach((chart) => {
    chart.addEventListener("pointermove", showTip);
    chart.addEventListener("pointerleave", () => { tip.hidden = true; });
    chart.addEventListener("click", (event) => {
      const pair = event.target.dataset.pair;
      if (pair === undefined) return;
      tip.hidden = true;
      filter.value = pair;
      applyFilter();
      document.getElementById("pairs").scrollIntoView();
    });
  });

  // ---- The pictures ----
  const viewer = document.getElementById("viewer");
  const pictures = [...document.querySelectorAll(".zoom img")];
  let current = 0;
  function show(number) {
    current = (number + pictures.length) % pictures.length;
    const picture = pictures[current];
    const pair = picture.closest("article").querySelector("h3").firstChild.textContent.trim();
    viewer.querySelector("img").src = picture.src;
    viewer.querySelector("img").alt = picture.alt;
    viewer.querySelector("b").textContent = picture.alt + " of " + pair;
    const legend = picture.closest("figure").querySelector(".legend");
    viewer.querySelector("div").replaceChildren(legend.cloneNode(true));
  }
  pictures.forEach((picture, number) => {
    picture.parentElement.addEventListener("click", () => {
      show(number);
      viewer.showModal();
    });
  });
  viewer.addEventListener("click", (event) => {
    const step = event.target.dataset.step;
    if (step !== undefined) show(current + Number(step));
    else viewer.close();
  });
  viewer.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") show(current - 1);
    if (event.key === "ArrowRight") show(current + 1);
  });
})();
