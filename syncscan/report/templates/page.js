/* Brings the parts together: first screen, tabs, drawer, toolbar, help, theme, paper. */

(() => {
  const $ = (id) => document.getElementById(id);
  let read = null;
  const data = () => read ??= readData($("data").textContent);
  const narrow = matchMedia("(max-width: 720px)");
  const page = { timeline: null, icicle: null, inView: null };

  const list = new List({ chosen: point, opened: open, tab: (id) => tabs.open(id) });
  const drawer = new Drawer({ walk: (by) => list.walk(by, false), turn, say: (sync) => page.timeline.sentence(sync) });
  const picture = $("picture") ? new StepPicture($("picture")) : null;
  const tabs = new Tabs({ timeline: drawTimeline, host: drawTree });

  function drawTree() {
    if ($("icicle")) page.icicle = new Icicle(data().host);
  }

  /** The timeline opens on the step of the picture, with what is chosen, or else the worst sync, selected. */
  function drawTimeline() {
    const timeline = new Timeline(data(), { opened: openSync, openedHabit: openHabit, chosen: followSync });
    toolbar(timeline, data());
    $("legend").open = !narrow.matches;
    const finding = numberOf(list.selected?.dataset.finding ?? document.querySelector(".change")?.dataset.finding);
    const sync = timeline.worst(finding < 0 ? 0 : finding);
    if (sync >= 0) timeline.choose({ sync });
    else if (list.selected) timeline.gotoHabit(numberOf(list.selected.dataset.habit));
    page.timeline = timeline;
    page.inView = new InView(timeline, data());
  }

  /** The element that holds the detail of an item: a change has that of its finding, or of its habit. */
  function detailOf(item, finding) {
    if (item.dataset.kind !== "change") return item;
    return finding >= 0 ? $(`f${finding}`) : item.dataset.habit ? $(`h${item.dataset.habit}`) : null;
  }

  /** What is chosen stands in the address, so that a link into a report leads to it. */
  function remember(hash) {
    if (location.protocol !== "about:") history.replaceState(null, "", hash);
  }

  /** An item was chosen: the timeline draws a step without it and turns to its finding's costliest sync point. */
  function point(item, finding) {
    const { timeline } = page;
    remember(`#${item.id}`);
    if (timeline) timeline.replayed.without(item.dataset.without, item.dataset.habit !== "");
    const sync = timeline ? timeline.worst(finding) : -1;
    if (timeline) {
      if (sync >= 0) timeline.goto(sync);
      else if (!timeline.gotoHabit(numberOf(item.dataset.habit))) timeline.say(`Chosen: ${item.querySelector(".pick").textContent}.`);
    }
    const detail = detailOf(item, finding);
    if (drawer.open && detail) drawer.show(detail, sync);
  }

  function open(item, finding) {
    const detail = detailOf(item, finding);
    if (detail) drawer.take(detail, page.timeline ? page.timeline.worst(finding) : -1);
  }

  /** The chosen finding's sync in the timeline. */
  function turn() {
    const finding = numberOf(drawer.item.dataset.finding);
    tabs.open("timeline");
    const sync = page.timeline.worst(finding);
    if (sync >= 0) page.timeline.goto(sync);
    $("pane").scrollIntoView({ block: "nearest" });
  }

  /** A sync point was asked for in the timeline. */
  function openSync(sync) {
    const item = $(`f${data().syncs.finding[sync]}`);
    if (!item) return;
    followSync(sync);
    drawer.take(item, sync);
  }

  /** A slice of a habit was clicked in the timeline. */
  function openHabit(number) {
    const item = $(`h${number}`);
    if (!item) return;
    remember(`#${item.id}`);
    list.mark(item);
    page.timeline.replayed.without("", true);
    drawer.take(item, -1);
  }

  /** Another sync point is chosen in the timeline: list, hatched step and open drawer go along. */
  function followSync(sync) {
    const finding = data().syncs.finding[sync], item = list.of(finding);
    if (!item || !page.timeline) return;
    if (item !== list.selected) {
      list.mark(item);
      page.timeline.replayed.without(item.dataset.without, false);
    }
    if (drawer.open) drawer.show($(`f${finding}`), sync);
  }

  /** Esc: the drawer first, then what is chosen. */
  function letGo() {
    if (drawer.open) return drawer.close();
    list.mark(null);
    remember("#");
    if (!page.timeline) return;
    page.timeline.replayed.without("", false);
    page.timeline.choose({});
  }

  const next = document.querySelector(".front .command");
  if (next) {
    const button = Object.assign(document.createElement("button"), { type: "button", id: "copy-next", className: "copy", textContent: "copy", ariaLabel: "Copy the next command" });
    button.addEventListener("click", () => copied(button, next.textContent));
    next.after(" ", button);
  }

  function toolbar(timeline, data) {
    const find = $("find"), found = $("found");
    const tell = () => {
      const { hits, hit, total } = timeline, some = total > hits.length;
      const counted = some ? `${total.toLocaleString("en")} in the trace, ${hits.length.toLocaleString("en")} drawn` : `${total} found`;
      const at = some ? `${hit + 1} of ${hits.length} drawn, ${total.toLocaleString("en")} in the trace` : `${hit + 1} of ${hits.length}`;
      found.textContent = !find.value.trim() ? "" : !total ? "no match" : hit < 0 ? counted : at;
      $("find-prev").hidden = $("find-next").hidden = !hits.length;
    };
    const next = (by) => { timeline.findNext(by); tell(); };
    find.addEventListener("input", () => { timeline.find(find.value); tell(); });
    find.addEventListener("keydown", (e) => {
      if (e.key === "Enter") next(e.shiftKey ? -1 : 1);
      else if (e.key === "Escape") { find.value = ""; timeline.find(""); tell(); timeline.lanes.focus(); }
    });
    $("find-next").addEventListener("click", () => next(1));
    $("find-prev").addEventListener("click", () => next(-1));
    $("sync-next").addEventListener("click", () => timeline.step(1));
    $("sync-prev").addEventListener("click", () => timeline.step(-1));
    $("all-lanes").addEventListener("click", () => timeline.show(!timeline.options.all));
    $("sync-next").disabled = $("sync-prev").disabled = !data.syncs.start.length;
    $("zoom-in").addEventListener("click", () => timeline.view.zoom(2, timeline.view.width / 2));
    $("zoom-out").addEventListener("click", () => timeline.view.zoom(0.5, timeline.view.width / 2));
    $("zoom-home").addEventListener("click", () => timeline.view.fly(...timeline.view.home));
    places(timeline, data);
    const kinds = new Set(data.groups.flatMap((g) => g.lanes.flatMap((l) => l.slices.flatMap((s) => [...new Set(s.what)]))));
    $("legend-input").hidden = !kinds.has(INPUT);
    $("legend-ranks").hidden = !kinds.has(COMMUNICATION);
    $("legend-pause").hidden = !kinds.has(PAUSE);
    for (const [what, id] of [[5, "copy"], [4, "kernel"], [1, "scope"]]) $(`legend-${id}`).hidden = !kinds.has(what) && !(what === 5 && kinds.has(6));
    for (const id of ["sync", "call", "bubble"]) $(`legend-${id}`).hidden = !data.syncs.start.length;
    $("legend-free").hidden = !data.unprofiled;
  }

  function places(timeline, data) {
    const goto = $("goto");
    goto.append(new Option("go to …", ""), new Option("whole trace", "all"));
    data.steps.slice(0, 200).forEach(([number], i) => goto.append(new Option(`step ${number}`, String(i))));
    goto.addEventListener("change", () => {
      if (goto.value === "all") timeline.view.fly(0, data.length);
      else if (goto.value) {
        const [, start, end] = data.steps[Number(goto.value)], pad = (end - start) / 50;
        timeline.view.fly(start - pad, end + pad);
      }
      goto.value = "";
    });
  }

  // help, keys

  const help = $("help");
  $("keys")?.addEventListener("click", () => help.showModal());
  $("help-close").addEventListener("click", () => help.close());
  help.addEventListener("click", (e) => { if (e.target === help) help.close(); });
  const keys = new Keys({ list, get timeline() { return tabs.shown === "timeline" ? page.timeline : null; }, drawer, help, letGo });

  // theme, paper

  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => { if (page.timeline) { page.timeline.palette.read(); page.timeline.draw(); } };
  $("theme").addEventListener("click", () => {
    const now = root.style.colorScheme || (dark.matches ? "dark" : "light");
    root.style.colorScheme = now === "dark" ? "light" : "dark";
    repaint();
  });
  dark.addEventListener("change", repaint);
  let before = "";
  addEventListener("beforeprint", () => { before = root.style.colorScheme; root.style.colorScheme = "light"; repaint(); });
  addEventListener("afterprint", () => { root.style.colorScheme = before; repaint(); });

  const linked = $(location.hash.slice(1));
  if (linked?.classList.contains("item")) {
    list.reveal(linked);
    list.choose(linked);
  }
  tabs.begin(narrow.matches);

  window.syncscan = Object.assign(page, { list, drawer, keys, tabs, picture, get data() { return data(); } });
})();
