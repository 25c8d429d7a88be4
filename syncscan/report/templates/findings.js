/* The findings table: sorting, filters, opening, and the evidence as Markdown. The rows are in the page already. */

class Findings {
  /**
   * hooks: `opened(finding)` when a reader opens a row; `jump(finding)` and `jumpTo(finding, ns)` ask for the timeline
   * to be brought into view too.
   */
  constructor(hooks) {
    this.table = document.getElementById("findings");
    if (!this.table) return;
    this.hooks = hooks;
    this.bodies = [...this.table.tBodies];
    this.table.addEventListener("click", (e) => this.clicked(e));
    this.sorting();
    this.filtering();
  }

  clicked(e) {
    const body = e.target.closest(".finding");
    const button = e.target.closest("button");
    if (!body) return;
    if (button && button.dataset.jump) this.hooks.jump(Number(button.dataset.jump));
    else if (button && button.dataset.at) this.hooks.jumpTo(Number(button.dataset.finding), Number(button.dataset.at));
    else if (button && button.dataset.copy) this.copy(button, body);
    else if (e.target.closest(".row") && !getSelection().toString()) {
      this.toggle(body);
      if (body.classList.contains("open")) this.hooks.opened(Number(body.id.slice(1)));
    }
  }

  toggle(body, open = !body.classList.contains("open")) {
    body.classList.toggle("open", open);
    body.querySelector(".toggle").setAttribute("aria-expanded", open);
  }

  /** Open a finding and bring it into view. */
  open(number) {
    const body = document.getElementById(`f${number}`);
    if (!body) return;
    if (body.hidden) this.reset();
    this.toggle(body, true);
    body.classList.remove("flash");
    void body.offsetWidth;
    body.classList.add("flash");
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    body.scrollIntoView({ block: "nearest", behavior: calm ? "auto" : "smooth" });
    body.querySelector(".toggle").focus({ preventScroll: true });
  }

  sorting() {
    const heads = [...this.table.tHead.querySelectorAll("th")];
    heads.forEach((head, column) => {
      const button = head.querySelector("button");
      if (!head.dataset.sort) return button.remove();
      button.addEventListener("click", () => {
        const number = head.classList.contains("num") || head.dataset.sort === "severity";
        const down = head.hasAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : number;
        for (const h of heads) h.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        this.sort(column, number, down);
      });
    });
  }

  sort(column, number, down) {
    const value = (body) => {
      const text = body.rows[0].cells[column].dataset.value;
      return number ? Number(text) : text.toLowerCase();
    };
    const compare = number ? (a, b) => value(a) - value(b) : (a, b) => value(a).localeCompare(value(b));
    const sorted = [...this.bodies].sort((a, b) => (down ? -1 : 1) * compare(a, b));
    this.table.append(...sorted);
  }

  filtering() {
    this.form = document.getElementById("filters");
    this.form.hidden = false;
    this.selects = [...this.form.querySelectorAll("select")];
    for (const select of this.selects) {
      const values = [...new Set(this.bodies.map((b) => b.dataset[select.dataset.filter]))].sort();
      select.append(new Option("all", ""), ...values.map((v) => new Option(v, v)));
      select.addEventListener("change", () => this.filter());
    }
    this.text = document.getElementById("filter-text");
    this.text.addEventListener("input", () => this.filter());
    this.form.addEventListener("submit", (e) => e.preventDefault());
    this.filter();
  }

  filter() {
    const text = this.text.value.trim().toLowerCase();
    let shown = 0;
    for (const body of this.bodies) {
      const fits = this.selects.every((s) => !s.value || body.dataset[s.dataset.filter] === s.value);
      body.hidden = !(fits && (!text || body.textContent.toLowerCase().includes(text)));
      shown += body.hidden ? 0 : 1;
    }
    document.getElementById("filter-count").textContent = `${shown} of ${this.bodies.length} shown`;
    document.getElementById("none-left").hidden = shown > 0;
  }

  reset() {
    for (const select of this.selects) select.value = "";
    this.text.value = "";
    this.filter();
  }

  async copy(button, body) {
    const text = evidence(body);
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      copyByHand(text);
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy evidence as Markdown"; }, 1500);
  }
}

/** One finding as Markdown for a pull request: names stand in code, where no markup works. */
function evidence(body) {
  const text = (selector) => body.querySelector(selector)?.textContent.trim() ?? "";
  const code = (s) => "`` " + s.replaceAll("`", "'") + " ``";
  const lines = [`**${code(text(".toggle"))}** (${text(".severity")})`, "", `- where: ${code(text(".row .place"))}`];
  for (const row of body.querySelectorAll(".evidence > div")) {
    lines.push(`- ${row.querySelector("dt").textContent}: ${code(row.querySelector("dd").textContent.trim())}`);
  }
  lines.push("", `Fix: ${code(text(".fix"))}`, "", "| step | at | wait | idle behind |", "|---|---|---|---|");
  for (const row of body.querySelectorAll(".occurrences tbody tr")) {
    lines.push(`| ${[...row.cells].slice(0, 4).map((c) => c.textContent.trim()).join(" | ")} |`);
  }
  return lines.join("\n") + "\n";
}

/** For browsers that keep the clipboard from pages opened as files. */
function copyByHand(text) {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
