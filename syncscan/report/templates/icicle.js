/* The icicle: whose functions a step's time is in, callers above what they call. A click, or Enter, zooms. */

const ICICLE_ROW = 21, ICICLE_LETTER = 6.3, ICICLE_COLORS = 6;
const SVG = "http://www.w3.org/2000/svg";

class Icicle {
  /** data: columns of nodes, callers before what they call; `name`, `place` and `owner` are numbers of texts. */
  constructor(data, prefix = "icicle") {
    this.data = data;
    this.$ = (id) => document.getElementById(id.replace(/^icicle/, prefix));
    this.box = this.$("icicle");
    this.nodes = icicleNodes(data);
    this.focus = this.chosen = this.nodes[0];
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("aria-hidden", "true");
    this.box.replaceChildren(this.svg);
    this.legend();
    this.box.addEventListener("click", (e) => this.clicked(e));
    this.box.addEventListener("pointermove", (e) => this.tip(e));
    this.box.addEventListener("pointerleave", () => { this.$("tip").hidden = true; });
    this.box.addEventListener("keydown", (e) => this.key(e));
    this.$("icicle-out").addEventListener("click", () => { this.zoom(this.nodes[0]); this.box.focus(); });
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.zoom(this.focus);
  }

  /** Show another tree, of the same kind. */
  show(data) {
    this.data = data;
    this.nodes = icicleNodes(data);
    this.legend();
    this.zoom(this.nodes[0]);
  }

  legend() {
    const entries = this.data.owners.map(([name, share], number) => {
      const entry = document.createElement("li"), swatch = document.createElement("i");
      swatch.className = `swatch own${icicleColor(this.data.colors[number])}`;
      entry.append(swatch, `${name} ${share}`);
      return entry;
    });
    this.$("icicle-legend").replaceChildren(...entries);
  }

  // what is drawn

  zoom(node) {
    this.focus = node;
    this.$("icicle-out").hidden = node === this.nodes[0];
    this.$("tip").hidden = true;
    this.choose(node);
  }

  choose(node) {
    this.chosen = node;
    const parts = this.facts(node).map(([label, text]) => {
      const part = document.createElement(label ? "span" : "strong");
      if (label) part.append(Object.assign(document.createElement("b"), { textContent: label }));
      part.append(text);
      return part;
    });
    this.$("icicle-details").replaceChildren(...parts);
    this.draw();
  }

  draw() {
    const width = this.svg.clientWidth;
    if (!width || !this.focus.us) return;
    const scale = width / this.focus.us, cells = [];
    for (let above = this.focus.parent; above; above = above.parent) cells.push(this.cell(above, 0, width, "above"));
    const visit = (node) => {
      const wide = node.us * scale;
      if (wide < 0.7) return;
      cells.push(this.cell(node, (node.x - this.focus.x) * scale, wide, ""));
      node.children.forEach(visit);
    };
    visit(this.focus);
    const depth = Math.max(...cells.map((cell) => Number(cell.dataset.depth)));
    this.svg.setAttribute("height", (depth + 1) * ICICLE_ROW);
    this.svg.replaceChildren(...cells);
    this.reveal();
  }

  cell(node, x, width, look) {
    const cell = document.createElementNS(SVG, "g"), rect = document.createElementNS(SVG, "rect");
    const y = node.depth * ICICLE_ROW, room = Math.floor((width - 8) / ICICLE_LETTER);
    cell.dataset.node = node.number;
    cell.dataset.depth = node.depth;
    cell.setAttribute("class", `${look}${node === this.chosen ? " chosen" : ""}`);
    const place = { x: x + 0.5, y: y + 0.5, width: Math.max(width - 1, 0.4), height: ICICLE_ROW - 1.5, rx: 2 };
    for (const [name, value] of Object.entries(place)) rect.setAttribute(name, value);
    rect.setAttribute("class", node.number ? `own${icicleColor(this.data.colors[node.owner])}` : "whole");
    cell.append(rect);
    if (room >= 3) {
      const text = document.createElementNS(SVG, "text");
      text.setAttribute("x", Math.max(x, 0) + 5);
      text.setAttribute("y", y + ICICLE_ROW - 6.5);
      text.textContent = node.name.length > room ? `${node.name.slice(0, room - 1)}…` : node.name;
      cell.append(text);
    }
    return cell;
  }

  /** Scroll the chosen one into what is seen of the picture; never the page. */
  reveal() {
    const top = this.chosen.depth * ICICLE_ROW, { scrollTop, clientHeight } = this.box;
    if (top < scrollTop) this.box.scrollTop = top;
    else if (top + ICICLE_ROW > scrollTop + clientHeight) this.box.scrollTop = top + 2 * ICICLE_ROW - clientHeight;
  }

  facts(node) {
    const whole = this.nodes[0].us, share = (us) => `${icicleTime(us)}, ${((100 * us) / whole).toFixed(1)}%`;
    const facts = [["", node.name], ["at", node.place], ["total", share(node.us)], ["self", share(node.self)]];
    facts.push([this.data.whose || "whose", node.number ? this.data.owners[node.owner][0] : ""], ["phase", node.phase]);
    return facts.filter(([, text]) => text);
  }

  // pointer and keys

  under(e) {
    const cell = e.target.closest("[data-node]");
    return cell ? this.nodes[Number(cell.dataset.node)] : null;
  }

  clicked(e) {
    const node = this.under(e);
    if (node) this.zoom(node === this.focus && node.parent ? node.parent : node);
  }

  tip(e) {
    const node = this.under(e), tip = this.$("tip");
    tip.hidden = !node;
    if (!node) return;
    tip.replaceChildren(...this.facts(node).map(([label, text]) => {
      const row = document.createElement(label ? "div" : "strong");
      row.textContent = label ? `${label} ${text}` : text;
      return row;
    }));
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(e.clientX + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${e.clientY + height + 24 > innerHeight ? Math.max(4, e.clientY - height - 12) : e.clientY + 16}px`;
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const { chosen } = this, besides = chosen.parent ? chosen.parent.children : [chosen], at = besides.indexOf(chosen);
    if (e.key === "ArrowDown" && chosen.children.length) this.choose(chosen.children[0]);
    else if (e.key === "ArrowUp" && chosen.parent) this.up(chosen.parent);
    else if (e.key === "ArrowRight" && at + 1 < besides.length && chosen !== this.focus) this.choose(besides[at + 1]);
    else if (e.key === "ArrowLeft" && at > 0 && chosen !== this.focus) this.choose(besides[at - 1]);
    else if (e.key === "Enter" || e.key === " ") this.zoom(chosen);
    else if (e.key === "Escape" || e.key === "Home") this.zoom(this.nodes[0]);
    else if (!e.key.startsWith("Arrow")) return;
    e.preventDefault();
    e.stopPropagation();
  }

  /** To a caller; above what is zoomed into the picture zooms out with it. */
  up(node) {
    if (node.depth < this.focus.depth) this.zoom(node);
    else this.choose(node);
  }
}

/** The tree below the whole step: what one calls lies side by side in it, the longest first. */
function icicleNodes(data) {
  const text = (number) => data.texts[number];
  const whole = { number: 0, name: data.whole, place: "", phase: "", us: data.step, self: 0, depth: 0, x: 0, parent: null, children: [] };
  const nodes = [whole];
  data.parent.forEach((parent, i) => {
    const above = nodes[parent + 1], last = above.children[above.children.length - 1];
    const node = {
      number: i + 1, name: text(data.name[i]), place: text(data.place[i]), phase: text(data.phase[i]), owner: data.owner[i],
      us: data.us[i], self: data.self[i], depth: above.depth + 1, x: last ? last.x + last.us : above.x, parent: above, children: [],
    };
    above.children.push(node);
    nodes.push(node);
  });
  return nodes;
}

function icicleColor(owner) { return owner < ICICLE_COLORS ? owner : "-rest"; }

function icicleTime(us) {
  const [size, unit] = us >= 1e6 ? [1e6, "s"] : us >= 1e3 ? [1e3, "ms"] : [1, "µs"];
  return `${Number((us / size).toPrecision(3))} ${unit}`;
}
