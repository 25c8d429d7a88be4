/* The edges that a reader can drag, or move with arrow keys: between threads and devices, and between labels and lanes. */

const LEAST_LABEL = 60;

class Splits {
  constructor(timeline) {
    this.timeline = timeline;
    this.$ = (id) => document.getElementById(id);
    this.edge(this.$("split"), (e) => { timeline.split = this.$("lanes").getBoundingClientRect().bottom - e.clientY; }, {
      ArrowUp: () => { timeline.split = timeline.place.low + ROW; },
      ArrowDown: () => { timeline.split = timeline.place.low - ROW; },
    });
    this.edge(this.$("label-edge"), (e) => this.widen(e.clientX - this.$("timeline").getBoundingClientRect().left), {
      ArrowLeft: () => this.widen(timeline.left - 16),
      ArrowRight: () => this.widen(timeline.left + 16),
    });
  }

  edge(handle, drag, keys) {
    handle.addEventListener("pointerdown", (e) => handle.setPointerCapture(e.pointerId));
    handle.addEventListener("pointermove", (e) => { if (e.buttons) { drag(e); this.timeline.later(); } });
    handle.addEventListener("keydown", (e) => {
      if (!keys[e.key]) return;
      keys[e.key]();
      e.preventDefault();
      e.stopPropagation();
      this.timeline.later();
    });
  }

  widen(label) {
    const view = this.$("timeline"), wide = Math.max(LEAST_LABEL, Math.min(label, view.clientWidth / 2));
    view.style.setProperty("--label", `${Math.round(wide)}px`);
    this.timeline.resize();
  }

  /** Put the devices' labels and the edge between threads and devices where `Timeline.place` says. */
  place({ low, top, height }) {
    const { layout, sunk, left } = this.timeline, split = this.$("split"), labels = this.$("pinned-labels"), box = labels.parentElement;
    box.hidden = layout.pinned === layout.height;
    box.style.top = `${low ? height - low : layout.pinned - top}px`;
    box.style.height = `${low || layout.height - layout.pinned}px`;
    labels.style.top = `${low ? -sunk : 0}px`;
    split.hidden = !low;
    split.style.top = `${height - low - 4}px`;
    split.setAttribute("aria-valuenow", Math.round((100 * low) / height));
    this.$("label-edge").setAttribute("aria-valuenow", Math.round((100 * left) / (this.$("timeline").clientWidth || 1)));
  }
}
