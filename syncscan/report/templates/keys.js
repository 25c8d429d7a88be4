/* The page's keys: each does what a click or a button does. Single letters can be switched off, and never act while one types. */

class Keys {
  /** parts: list, timeline (null until one is drawn), drawer, help, and letGo() for Esc. */
  constructor(parts) {
    this.parts = parts;
    this.held = new Set();
    this.single = document.getElementById("single-keys");
    document.addEventListener("keydown", (e) => this.down(e));
    document.addEventListener("keyup", (e) => this.held.delete(e.key.toLowerCase()));
    window.addEventListener("blur", () => this.held.clear());
  }

  down(e) {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || this.parts.help.open) return;
    if (e.target.closest("input:not([type=checkbox]), select, textarea")) return;
    const act = this.special(e) || (e.key.length === 1 && this.single.checked && this.letter(e.key.toLowerCase()));
    if (!act) return;
    e.preventDefault();
    act();
  }

  /** What a key of more than one letter does where the focus is. */
  special(e) {
    const { list, timeline, letGo, drawer } = this.parts;
    const on = timeline && e.target === timeline.lanes, listed = e.target.closest(".item");
    if (e.key === "Escape") return timeline || drawer.open ? letGo : null;
    if (listed && e.key === "ArrowDown") return () => list.walk(1);
    if (listed && e.key === "ArrowUp") return () => list.walk(-1);
    const free = on || e.target === document.body;
    if (free && e.key === "Enter" && timeline && timeline.opens) return () => timeline.openChosen();
    if (!on) return null;
    return {
      ArrowLeft: () => timeline.view.pan(-80),
      ArrowRight: () => timeline.view.pan(80),
      ArrowUp: () => timeline.scroll(-3 * ROW),
      ArrowDown: () => timeline.scroll(3 * ROW),
    }[e.key];
  }

  letter(key) {
    const { list, timeline, drawer } = this.parts, inside = drawer.root.contains(document.activeElement);
    const anywhere = {
      j: () => list.walk(1, !inside),
      k: () => list.walk(-1, !inside),
      "?": () => document.getElementById("keys").click(),
    }[key];
    if (anywhere || !timeline) return anywhere;
    const { view } = timeline;
    return {
      n: () => this.step(1, inside),
      p: () => this.step(-1, inside),
      "+": () => view.zoom(1.5, view.width / 2),
      "=": () => view.zoom(1.5, view.width / 2),
      "-": () => view.zoom(1 / 1.5, view.width / 2),
      0: () => view.fly(...view.home),
      f: () => timeline.fitSelected(),
      o: () => timeline.replayed.toggle(),
      "/": () => document.getElementById("find").focus(),
      w: () => this.hold(key),
      a: () => this.hold(key),
      s: () => this.hold(key),
      d: () => this.hold(key),
    }[key];
  }

  /** Go to the next sync; the focus goes along, so that Enter opens it, unless the drawer holds it. */
  step(by, inside) {
    const { timeline } = this.parts;
    timeline.step(by);
    if (!inside) timeline.lanes.focus({ preventScroll: true });
  }

  /** Move for as long as the key is held, at a speed that doesn't depend on the keyboard's repeat rate. */
  hold(key) {
    const running = this.held.size > 0;
    this.held.add(key);
    if (running) return;
    const { timeline } = this.parts, { view } = timeline;
    let before = performance.now() - 16;
    const move = (now) => {
      const dt = Math.min(64, Math.max(0, now - before));
      before = now;
      const has = (k) => (this.held.has(k) ? 1 : 0), { pointer } = timeline.controls;
      const zoom = has("w") - has("s"), pan = has("d") - has("a");
      const at = pointer >= 0 && pointer <= view.width ? pointer : view.width / 2;
      if (zoom) view.zoom(Math.exp(zoom * dt * 0.0045), at);
      if (pan) view.pan(pan * dt * 0.9);
      if (this.held.size) requestAnimationFrame(move);
    };
    move(performance.now());
  }
}
