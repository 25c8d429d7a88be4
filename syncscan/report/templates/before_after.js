/* The step before and after: each checkbox is a fix, and each set of fixes is drawn in the page already. */

class BeforeAfter {
  /** root: the figure; null where nothing is drawn. */
  constructor(root) {
    this.boxes = [...root.querySelectorAll("[data-fix]")];
    this.scenes = [...root.querySelectorAll(".scene")];
    this.plot = root.querySelector(".ba-plot");
    this.spoken = this.plot.getAttribute("aria-label").replace(/; after the fixes: .*/, "");
    for (const box of this.boxes) box.addEventListener("change", () => this.chosen(box));
  }

  get mask() { return this.boxes.reduce((mask, box, k) => mask | (box.checked ? 1 << k : 0), 0); }

  scene(mask) { return this.scenes.find((scene) => Number(scene.dataset.set) === mask); }

  /** Draw the chosen set; of a long step only one fix after the other is in the page: then those before come along. */
  chosen(box) {
    const number = this.boxes.indexOf(box);
    if (!this.scene(this.mask)) this.boxes.forEach((other, k) => { other.checked = k < number || (k === number && box.checked); });
    this.draw();
  }

  draw() {
    const drawn = this.scene(this.mask);
    for (const scene of this.scenes) scene.toggleAttribute("hidden", scene !== drawn);
    document.getElementById("ba-says").textContent = drawn.dataset.says;
    this.plot.setAttribute("aria-label", `${this.spoken}; after the fixes: ${drawn.dataset.says}`);
  }
}
