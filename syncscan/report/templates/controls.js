/* Pointer and wheel on the timeline: they move its view, choose what is under the pointer, and say what that is. */

class Controls {
  constructor(timeline) {
    this.timeline = timeline;
    this.pointers = new Map();
    this.grip = null;
    this.pointer = -1;
    this.listen();
  }

  listen() {
    const { canvas, lanes } = this.timeline;
    lanes.addEventListener("scroll", () => this.timeline.later(), { passive: true });
    canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    canvas.addEventListener("pointerdown", (e) => this.press(e));
    canvas.addEventListener("pointermove", (e) => this.move(e));
    canvas.addEventListener("pointerup", (e) => this.release(e));
    canvas.addEventListener("pointercancel", () => this.drop());
    canvas.addEventListener("pointerleave", () => this.hideTip());
    canvas.addEventListener("dblclick", () => this.timeline.fitSelected());
    const overview = document.getElementById("overview");
    overview.addEventListener("pointerdown", (e) => { overview.setPointerCapture(e.pointerId); this.center(e); });
    overview.addEventListener("pointermove", (e) => { if (e.buttons) this.center(e); });
    const thumb = document.getElementById("thumb");
    thumb.addEventListener("pointerdown", (e) => { thumb.setPointerCapture(e.pointerId); this.timeline.hold(e.clientY); });
    thumb.addEventListener("pointermove", (e) => { if (e.buttons) this.timeline.dragThumb(e.clientY); });
  }

  wheel(e) {
    const zooming = e.ctrlKey || e.metaKey;
    if (zooming) this.timeline.view.zoom(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0022)), this.inside(e));
    else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.timeline.view.pan(e.deltaX || e.deltaY);
    else return;
    e.preventDefault();
    this.hideTip();
  }

  inside(e) { return e.clientX - this.timeline.canvas.getBoundingClientRect().left - this.timeline.left; }

  press(e) {
    if (e.button) return;
    this.timeline.canvas.setPointerCapture(e.pointerId);
    this.pointers.set(e.pointerId, e.clientX);
    this.timeline.lanes.focus({ preventScroll: true });
    const t = this.timeline.view.t(this.inside(e));
    const { low, height } = this.timeline.place, y = e.clientY - this.timeline.canvas.getBoundingClientRect().top;
    const pinned = low > 0 && y >= height - low, top = pinned ? this.timeline.sunk : this.timeline.lanes.scrollTop;
    this.grip = { x: e.clientX, y: e.clientY, top, pinned, moved: false, t, measures: e.shiftKey };
  }

  move(e) {
    this.pointer = this.inside(e);
    if (this.pointers.size === 2 && this.pointers.has(e.pointerId)) return this.pinch(e);
    const grip = this.grip;
    if (!grip) return this.tip(e);
    if (Math.hypot(e.clientX - grip.x, e.clientY - grip.y) > 3) grip.moved = true;
    if (!grip.moved) return;
    this.hideTip();
    if (grip.measures) {
      this.timeline.state.measure = [grip.t, this.timeline.view.t(this.pointer)];
      this.timeline.later();
    } else {
      const { view } = this.timeline, by = grip.t - view.t(this.pointer);
      view.set(view.from + by, view.to + by);
      if (grip.pinned) this.timeline.sunk = grip.top + grip.y - e.clientY;
      else this.timeline.lanes.scrollTop = grip.top + grip.y - e.clientY;
    }
  }

  pinch(e) {
    const [a, b] = [...this.pointers.values()], before = Math.max(20, Math.abs(a - b));
    this.pointers.set(e.pointerId, e.clientX);
    const [c, d] = [...this.pointers.values()];
    const left = this.timeline.canvas.getBoundingClientRect().left + this.timeline.left;
    this.timeline.view.zoom(Math.max(20, Math.abs(c - d)) / before, (c + d) / 2 - left);
    if (this.grip) this.grip.moved = true;
  }

  release(e) {
    const grip = this.grip, measured = this.timeline.state.measure;
    this.drop();
    this.pointers.delete(e.pointerId);
    if (measured) this.timeline.view.fly(Math.min(...measured), Math.max(...measured));
    if (!grip || grip.moved) return;
    const box = this.timeline.canvas.getBoundingClientRect();
    const hit = this.timeline.at(e.clientX - box.left, e.clientY - box.top);
    this.timeline.choose(hit);
    this.timeline.openChosen();
  }

  drop() {
    this.grip = null;
    this.timeline.state.measure = null;
    this.pointers.clear();
    this.timeline.later();
  }

  /** Bring the middle of the view to where the overview was pressed. */
  center(e) {
    const { view, left, data } = this.timeline, box = document.getElementById("overview").getBoundingClientRect();
    const t = ((e.clientX - box.left - left) / view.width) * data.length, half = (view.to - view.from) / 2;
    view.flight++;
    view.set(t - half, t + half);
  }

  /** What is under the pointer: all of it below the lanes, and beside the pointer one line that hides little. */
  tip(e) {
    const { timeline } = this, box = timeline.canvas.getBoundingClientRect();
    const hit = timeline.at(e.clientX - box.left, e.clientY - box.top);
    const facts = timeline.facts(hit, hit.sync === undefined ? -1 : hit.sync), tip = document.getElementById("tip");
    timeline.canvas.style.cursor = hit.sync >= 0 || timeline.habitOf(hit) >= 0 ? "pointer" : "crosshair";
    if (!facts) return this.hideTip();
    timeline.write(document.getElementById("hover"), facts);
    document.getElementById("hover").hidden = false;
    tip.textContent = `${facts.brief}  ${facts.name}`;
    tip.classList.add("line");
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(e.clientX + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${e.clientY + height + 24 > innerHeight ? Math.max(4, e.clientY - height - 12) : e.clientY + 18}px`;
  }

  hideTip() { document.getElementById("tip").hidden = document.getElementById("hover").hidden = true; }
}
