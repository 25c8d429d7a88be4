/* Pointer, wheel and keys on the timeline: they move its view, choose what is under the pointer, and show the tooltip. */

class Controls {
  constructor(timeline) {
    this.timeline = timeline;
    this.pressed = new Set();
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
    overview.addEventListener("pointerdown", (e) => { overview.setPointerCapture(e.pointerId); this.centre(e); });
    overview.addEventListener("pointermove", (e) => { if (e.buttons) this.centre(e); });
    document.addEventListener("keydown", (e) => this.key(e));
    document.addEventListener("keyup", (e) => this.pressed.delete(e.key.toLowerCase()));
    window.addEventListener("blur", () => this.pressed.clear());
  }

  wheel(e) {
    const zooming = e.ctrlKey || e.metaKey || e.altKey;
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
    this.grip = { x: e.clientX, y: e.clientY, moved: false, t, measures: e.shiftKey };
  }

  move(e) {
    this.pointer = this.inside(e);
    if (this.pointers.size === 2 && this.pointers.has(e.pointerId)) return this.pinch(e);
    const grip = this.grip;
    if (!grip) return this.tip(e);
    if (Math.abs(e.clientX - grip.x) > 3) grip.moved = true;
    if (!grip.moved) return;
    this.hideTip();
    if (grip.measures) {
      this.timeline.state.measure = [grip.t, this.timeline.view.t(this.pointer)];
      this.timeline.later();
    } else {
      const { view } = this.timeline, by = grip.t - view.t(this.pointer);
      view.set(view.from + by, view.to + by);
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
    if (hit.sync >= 0) this.timeline.hooks.opened(hit.sync);
  }

  drop() {
    this.grip = null;
    this.timeline.state.measure = null;
    this.pointers.clear();
    this.timeline.later();
  }

  /** Bring the middle of the view to where the overview was pressed. */
  centre(e) {
    const { view, left, data } = this.timeline, box = document.getElementById("overview").getBoundingClientRect();
    const t = ((e.clientX - box.left - left) / view.width) * data.length, half = (view.to - view.from) / 2;
    view.flight++;
    view.set(t - half, t + half);
  }

  tip(e) {
    const box = this.timeline.canvas.getBoundingClientRect();
    const hit = this.timeline.at(e.clientX - box.left, e.clientY - box.top);
    const facts = this.timeline.facts(hit, hit.sync === undefined ? -1 : hit.sync), tip = document.getElementById("tip");
    this.timeline.canvas.style.cursor = hit.sync >= 0 ? "pointer" : "crosshair";
    if (!facts) return this.hideTip();
    const name = document.createElement("strong");
    name.textContent = facts.name;
    tip.replaceChildren(name, ...facts.rows.map(([label, value]) => {
      const row = document.createElement("div");
      row.textContent = `${label} ${value}`;
      return row;
    }));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(e.clientX + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${e.clientY + height + 24 > innerHeight ? Math.max(4, e.clientY - height - 12) : e.clientY + 16}px`;
  }

  hideTip() { document.getElementById("tip").hidden = true; }

  key(e) {
    const typing = e.target.closest("input[type=search], select, textarea");
    if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
    const key = e.key.toLowerCase(), { timeline } = this, { view } = timeline;
    const on = e.target === timeline.lanes;
    if ("wasd".includes(key) && key.length === 1) this.hold(key);
    else if (on && (key === "arrowleft" || key === "arrowright")) view.pan(key === "arrowleft" ? -80 : 80);
    else if (key === "+" || key === "=") view.zoom(1.5, view.width / 2);
    else if (key === "-") view.zoom(1 / 1.5, view.width / 2);
    else if (key === "n" || key === "p") timeline.step(key === "n" ? 1 : -1);
    else if (key === "f") timeline.fitSelected();
    else if (key === "0") view.fly(...view.home);
    else if (key === "enter" && on && timeline.state.sync >= 0) timeline.hooks.opened(timeline.state.sync);
    else if (key === "escape") timeline.choose({});
    else if (key === "/") document.getElementById("find").focus();
    else if (key === "?") document.getElementById("keys").click();
    else if (key === "o") document.getElementById("overlay").click();
    else return;
    e.preventDefault();
  }

  /** Move for as long as the key is held, at a speed that doesn't depend on the keyboard's repeat rate. */
  hold(key) {
    const running = this.pressed.size > 0;
    this.pressed.add(key);
    if (running) return;
    const { view } = this.timeline;
    let before = performance.now() - 16;
    const move = (now) => {
      const dt = Math.min(64, Math.max(0, now - before));
      before = now;
      const has = (k) => (this.pressed.has(k) ? 1 : 0);
      const zoom = has("w") - has("s"), pan = has("d") - has("a");
      const at = this.pointer >= 0 && this.pointer <= view.width ? this.pointer : view.width / 2;
      if (zoom) view.zoom(Math.exp(zoom * dt * 0.0045), at);
      if (pan) view.pan(pan * dt * 0.9);
      if (this.pressed.size) requestAnimationFrame(move);
    };
    move(performance.now());
  }
}
