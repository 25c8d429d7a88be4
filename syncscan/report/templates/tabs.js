/* The tabs below the first screen. */

/** The tabs: one is shown, and each is drawn when it is first opened. */
class Tabs {
  /** draw: tab → what draws it. */
  constructor(draw) {
    this.draw = draw;
    this.tabs = [...document.querySelectorAll("[role=tab]")];
    for (const tab of this.tabs) tab.addEventListener("click", () => this.open(tab.id.replace("tab-", "")));
    document.querySelector(".tabs").addEventListener("keydown", (e) => this.key(e));
  }

  get shown() { return this.tabs.find((tab) => tab.getAttribute("aria-selected") === "true")?.id.replace("tab-", ""); }

  /** The first one; on a phone the timeline waits until it is asked for. */
  begin(narrow) {
    const first = this.tabs.find((tab) => tab.dataset.opened !== undefined);
    this.tabs[0].tabIndex = 0;
    if (!this.shown && !(narrow && first.id === "tab-timeline")) this.open(first.id.replace("tab-", ""));
  }

  open(id) {
    for (const tab of this.tabs) {
      const chosen = tab.id === `tab-${id}`;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !chosen;
    }
    const draw = this.draw[id];
    delete this.draw[id];
    draw?.();
  }

  key(e) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!by) return;
    e.preventDefault();
    e.stopPropagation();
    const next = this.tabs[(this.tabs.indexOf(document.activeElement) + by + this.tabs.length) % this.tabs.length];
    next.focus();
    this.open(next.id.replace("tab-", ""));
  }
}
