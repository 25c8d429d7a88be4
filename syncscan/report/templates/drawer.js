/* The drawer: the detail of one finding or habit, as the list holds it, and of the sync point that it was opened at. */

class Drawer {
  /**
   * hooks: `walk(by)` to the next item of the list; `turn()` shows what is chosen in the timeline; `say(sync)` tells a sync
   * point in a sentence.
   */
  constructor(hooks) {
    this.hooks = hooks;
    this.$ = (id) => document.getElementById(id);
    this.root = this.$("drawer");
    this.opener = null;
    this.item = null;
    this.$("drawer-close").addEventListener("click", () => this.close());
    this.$("drawer-prev").addEventListener("click", () => this.hooks.walk(-1));
    this.$("drawer-next").addEventListener("click", () => this.hooks.walk(1));
    this.$("drawer-timeline").addEventListener("click", () => this.hooks.turn());
    this.$("drawer-body").addEventListener("click", (e) => { if (e.target.dataset.copy !== undefined) copied(e.target, evidence(this.item)); });
  }

  get open() { return !this.root.hidden; }

  /** Show an item's detail; `sync` is the sync point that is meant, or -1. The focus stays where it is. */
  show(item, sync) {
    const same = item === this.item;
    this.item = item;
    const severity = item.querySelector(".severity").cloneNode(true), title = document.createElement("bdi");
    title.textContent = item.querySelector(".pick").textContent;
    this.$("drawer-title").replaceChildren(severity, title);
    this.$("drawer-place").textContent = item.querySelector(".place")?.textContent ?? "";
    this.$("drawer-sync").hidden = sync < 0;
    this.$("drawer-sync").textContent = sync < 0 ? "" : this.hooks.say(sync);
    this.$("drawer-timeline").hidden = item.dataset.kind !== "finding" || !document.getElementById("tab-timeline");
    this.$("drawer-body").replaceChildren(item.querySelector(".detail").cloneNode(true));
    this.$("drawer-body").firstChild.className = "shown";
    this.root.hidden = false;
    if (!same) this.root.scrollTop = 0;
  }

  /** The same, and the focus goes there; `close` gives it back. */
  take(item, sync) {
    if (!this.root.contains(document.activeElement)) this.opener = document.activeElement;
    this.show(item, sync);
    this.root.focus({ preventScroll: true });
  }

  close() {
    const held = this.root.contains(document.activeElement);
    this.root.hidden = true;
    this.item = null;
    if (held && this.opener?.isConnected) this.opener.focus({ preventScroll: true });
  }
}

/** Copy a text, and say so on the button for a moment. */
async function copied(button, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyByHand(text);
    button.focus();
  }
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1500);
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
