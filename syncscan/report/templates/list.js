/* What can be chosen: changes, findings and habits; walking, filtering, sorting. They are in the page already. */

const FIRST_FINDINGS = 30, FIRST_SMALL = 5, MEASURABLE = 1000;

class List {
  /** hooks: `chosen(item, finding)` when an item is chosen, `opened(item, finding)` when its detail is asked for, `tab(id)` opens a tab. */
  constructor(hooks) {
    this.hooks = hooks;
    this.root = document.querySelector("main");
    this.items = [...this.root.querySelectorAll(".item")];
    this.findings = this.items.filter((item) => item.dataset.kind === "finding");
    this.selected = null;
    /** How many findings are shown unasked: those whose saving can be measured, a few where none is. */
    const measurable = this.findings.filter((f) => Number(f.dataset.severity) > MEASURABLE).length;
    this.first = Math.min(FIRST_FINDINGS, Math.max(FIRST_SMALL, measurable));
    this.small = measurable <= this.first;
    this.every = this.findings.length <= this.first + 1;
    this.root.addEventListener("click", (e) => this.clicked(e));
    if (document.getElementById("filters")) this.filtering();
  }

  get shown() { return this.items.filter((item) => item.checkVisibility()); }

  clicked(e) {
    const item = e.target.closest(".item");
    if (!item || e.target.closest(".copy") || (!e.target.closest("button") && getSelection().toString())) return;
    this.choose(item);
    this.hooks.opened(item, numberOf(item.dataset.finding));
  }

  choose(item) {
    this.mark(item);
    this.hooks.chosen(item, numberOf(item.dataset.finding));
  }

  mark(item) {
    if (this.selected) this.show(this.selected, false);
    this.selected = item;
    if (item) this.show(item, true);
  }

  show(item, selected) {
    item.classList.toggle("selected", selected);
    for (const pick of item.querySelectorAll(".pick")) {
      if (selected) pick.setAttribute("aria-current", "true");
      else pick.removeAttribute("aria-current");
    }
  }

  /** What stands for a finding: what is chosen, if it is of it, else its own item. */
  of(finding) {
    return this.selected?.dataset.finding === String(finding) ? this.selected : document.getElementById(`f${finding}`);
  }

  /** Choose the next item (by = 1) or the previous one; the focus goes along unless it is held elsewhere on purpose. */
  walk(by, focus = true) {
    const { shown } = this, from = document.activeElement?.closest?.(".item") || this.selected;
    if (!shown.length) return;
    const at = shown.indexOf(from), next = shown[at < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.min(Math.max(at + by, 0), shown.length - 1)];
    if (focus) next.querySelector(".pick")?.focus({ preventScroll: true });
    this.reveal(next);
    this.choose(next);
  }

  reveal(item) {
    const panel = item.closest(".panel");
    if (panel?.hidden) this.hooks.tab(panel.id.replace("panel-", ""));
    if (item.hidden) this.reset();
    item.scrollIntoView({ block: "nearest" });
  }

  // filters and order

  filtering() {
    const $ = (id) => document.getElementById(id);
    this.form = $("filters");
    this.form.hidden = false;
    this.form.addEventListener("submit", (e) => e.preventDefault());
    this.text = $("filter-text");
    this.text.addEventListener("input", () => this.filter());
    this.selects = [...this.form.querySelectorAll("[data-filter]")];
    for (const select of this.selects) {
      const values = [...new Set(this.findings.map((f) => f.dataset[select.dataset.filter]))].sort();
      select.append(new Option("all", ""), ...values.map((v) => new Option(v, v)));
      select.addEventListener("change", () => this.filter());
    }
    this.order = [...this.findings];
    $("sort").addEventListener("change", (e) => this.sort(e.target.value));
    $("all-findings").addEventListener("click", () => {
      const first = this.findings.find((f) => f.hidden);
      this.every = true;
      this.filter();
      first?.querySelector(".pick").focus();
    });
    this.filter();
  }

  sort(by) {
    const sorted = by ? [...this.order].sort((a, b) => Number(b.dataset[by]) - Number(a.dataset[by])) : this.order;
    this.findings = sorted;
    document.getElementById("findings").append(...sorted);
    this.items = [...this.root.querySelectorAll(".item")];
    this.filter();
  }

  filter() {
    const text = this.text.value.trim().toLowerCase(), chosen = this.selects.filter((s) => s.value);
    let fitting = 0;
    for (const item of this.findings) {
      const fits = chosen.every((s) => item.dataset[s.dataset.filter] === s.value) && (!text || item.textContent.toLowerCase().includes(text));
      item.hidden = !fits || (fitting >= this.first && !this.every);
      fitting += fits ? 1 : 0;
    }
    const all = document.getElementById("all-findings"), some = text || chosen.length;
    document.getElementById("filter-count").textContent = some ? `${fitting} of ${this.findings.length}` : "";
    document.getElementById("none-left").hidden = fitting > 0;
    all.hidden = this.every || fitting <= this.first;
    all.textContent = `Show ${fitting - this.first} more${this.small && document.querySelector("#findings .saves")?.textContent ? ", each below 1% of the step" : ""}`;
  }

  reset() {
    for (const select of this.selects) select.value = "";
    this.text.value = "";
    this.every = true;
    this.filter();
  }
}

/** A finding's number as an item holds it, or -1. */
function numberOf(text) { return text ? Number(text) : -1; }

/** One finding as Markdown for a pull request: names stand in code, where no markup works. */
function evidence(item) {
  const text = (selector) => item.querySelector(selector)?.textContent.trim() ?? "";
  const code = (s) => "`` " + s.replaceAll("`", "'") + " ``";
  const lines = [`**${code(text(".pick"))}** (${text(".severity")})`, "", `- where: ${code(text(".place"))}`];
  for (const row of item.querySelectorAll("table.labels tr")) lines.push(`- ${row.cells[0].textContent}: ${code(row.cells[1].textContent.trim())}`);
  return lines.join("\n") + "\n";
}
