/* The picture's rows: a click takes a change out, and those below it are drawn without it. */

class StepPicture {
  /** box: holds the picture in each width, and in `data-after` the step after each set of changes, by the sum of their bits. */
  constructor(box) {
    this.after = JSON.parse(box.dataset.after || "{}");
    this.rows = [...box.querySelectorAll(".sp-after")].map((row) => ({ row, number: Number(row.dataset.change) }));
    this.off = new Set();
    if (!Object.keys(this.after).length) return;
    for (const { row, number } of this.rows) {
      row.setAttribute("role", "button");
      row.setAttribute("tabindex", "0");
      row.addEventListener("click", () => this.toggle(number));
      row.addEventListener("keydown", (e) => {
        if (e.key !== "Enter" && e.key !== " ") return;
        e.preventDefault();
        e.stopPropagation();
        this.toggle(number);
      });
    }
    this.draw();
  }

  toggle(number) {
    if (!this.off.delete(number)) this.off.add(number);
    this.draw();
  }

  /** What the step takes after the changes up to this one that aren't taken out: [µs, least, most, in words]; or nothing. */
  state(number) {
    let mask = 0;
    for (let k = 0; k <= number; k++) mask |= this.off.has(k) ? 0 : 1 << k;
    return this.after[mask];
  }

  draw() {
    for (const { row, number } of this.rows) {
      const off = this.off.has(number), state = off ? null : this.state(number);
      row.setAttribute("aria-pressed", String(!off));
      row.setAttribute("aria-label", `Change ${number + 1}: ${off ? "taken out" : state[3]}`);
      if (state) this.place(row, state);
      else row.querySelector(".sp-value").textContent = "taken out";
    }
  }

  place(row, [us, low, high, words]) {
    const left = Number(row.dataset.left), scale = Number(row.dataset.scale), at = (t) => left + t * scale;
    const bar = row.querySelector(".sp-bar"), whisker = row.querySelector(".sp-whisker"), value = row.querySelector(".sp-value");
    const middle = Number(bar.getAttribute("y")) + Number(bar.getAttribute("height")) / 2, free = at(Math.max(us, high)) + 9;
    bar.setAttribute("width", us * scale);
    whisker.setAttribute("d", `M${at(low)} ${middle}H${at(high)}M${at(low)} ${middle - 5}v10M${at(high)} ${middle - 5}v10`);
    value.textContent = words;
    const fits = free + 8.2 * words.length <= Number(row.dataset.width);
    value.setAttribute("x", fits ? free : at(Math.min(us, low)) - 8);
    value.setAttribute("text-anchor", fits ? "start" : "end");
  }
}
