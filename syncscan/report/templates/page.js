/* Brings the parts together: list, timeline, drawer, toolbar, help, theme, paper. */

(() => {
  const $ = (id) => document.getElementById(id);
  const data = readData($("data").textContent);
  const drawn = data.groups.length > 0;
  if (!drawn) for (const e of document.querySelectorAll(".tools > :not(h2), .replayed, .view")) e.hidden = true;
  const narrow = matchMedia("(max-width: 960px)"), calm = matchMedia("(prefers-reduced-motion: reduce)");
  $("legend").open = !narrow.matches;

  const icicle = data.host ? new Icicle(data.host) : null;
  const list = new List({ chosen: point, opened: open });
  const timeline = drawn ? new Timeline(data, { opened: openSync, openedHabit: openHabit, chosen: followSync, escaped: letGo }) : null;
  const drawer = new Drawer({
    closed: () => room(),
    walk: (by) => list.walk(by, false),
    jump: (finding, ns) => turn(data.syncs.start.findIndex((t, i) => t === ns && data.syncs.finding[i] === finding)),
    chosen: (finding) => { list.reveal($(`f${finding}`)); list.choose($(`f${finding}`)); },
    say: (sync) => timeline.sentence(sync),
  });

  /** The element that holds the detail of an item: a remedy has that of its finding, or of its habit. */
  function detailOf(item, finding) {
    if (item.dataset.kind !== "remedy") return item;
    return finding >= 0 ? $(`f${finding}`) : item.dataset.habit ? $(`h${item.dataset.habit}`) : null;
  }

  function turn(sync) {
    if (timeline && sync >= 0) timeline.goto(sync);
  }

  /** What is chosen stands in the address, so that a link into a report leads to it. */
  function remember(hash) {
    if (location.protocol !== "about:") history.replaceState(null, "", hash);
  }

  /** An item was chosen: the timeline draws a step without it and turns to its finding's costliest sync point. */
  function point(item, finding) {
    remember(`#${item.id}`);
    if (timeline) timeline.replayed.without(item.dataset.without, item.dataset.habit !== undefined && item.dataset.habit !== "");
    const sync = timeline ? timeline.worst(finding) : -1;
    if (sync >= 0) turn(sync);
    else if (timeline && !timeline.gotoHabit(numberOf(item.dataset.habit))) timeline.say(`Chosen: ${item.querySelector("h3").textContent}. Enter shows its detail.`);
    const detail = detailOf(item, finding);
    if (drawer.open && detail) drawer.show(detail, sync);
  }

  function open(item, finding) {
    const detail = detailOf(item, finding);
    if (!detail) return;
    drawer.take(detail, timeline ? timeline.worst(finding) : -1);
    room();
  }

  /** A sync point was asked for in the timeline. */
  function openSync(sync) {
    const item = $(`f${data.syncs.finding[sync]}`);
    if (!item) return;
    followSync(sync);
    drawer.take(item, sync);
    room();
  }

  /** A slice of a habit was clicked in the timeline. */
  function openHabit(number) {
    const item = $(`h${number}`);
    if (!item) return;
    remember(`#${item.id}`);
    list.mark(item);
    timeline.replayed.without("", true);
    drawer.take(item, -1);
    room();
  }

  /** Another sync point is chosen in the timeline: list, hatched step and open drawer go along. */
  function followSync(sync) {
    const finding = data.syncs.finding[sync], item = list.of(finding);
    if (!item) return;
    if (item !== list.selected) {
      list.mark(item);
      timeline.replayed.without(item.dataset.without, false);
    }
    if (drawer.open) drawer.show($(`f${finding}`), sync);
  }

  /** Esc: the drawer first, then what is chosen. */
  function letGo() {
    if (drawer.open) return drawer.close();
    list.mark(null);
    remember("#");
    timeline.replayed.without("", false);
    timeline.choose({});
  }

  // how high the timeline is: what of the window is left below the top of list and timeline; beside the end of a long list
  // less, so that it stays whole

  function room() {
    const top = Math.max(8, $("workbench").getBoundingClientRect().top), below = innerHeight - top - 8, { bottom, height } = $("list").getBoundingClientRect();
    if (drawer.open && !narrow.matches && below < Math.min(640, innerHeight - 20)) {
      scrollTo({ top: scrollY + top - 8, behavior: calm.matches ? "auto" : "smooth" });
    }
    const left = height > innerHeight - 16 ? Math.min(below, bottom - top) : below;
    $("pane").style.setProperty("--list", `${Math.round($("list").clientWidth)}px`);
    const high = narrow.matches ? "" : `${Math.round(Math.max(left, drawer.open ? 540 : 400))}px`;
    if ($("pane").style.getPropertyValue("--room") !== high) $("pane").style.setProperty("--room", high);
  }
  addEventListener("scroll", () => room(), { passive: true });
  addEventListener("resize", () => room());
  room();

  if (timeline) {
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
    $("sync-next").disabled = $("sync-prev").disabled = !data.syncs.start.length;
    $("zoom-in").addEventListener("click", () => timeline.view.zoom(2, timeline.view.width / 2));
    $("zoom-out").addEventListener("click", () => timeline.view.zoom(0.5, timeline.view.width / 2));
    $("zoom-home").addEventListener("click", () => timeline.view.fly(...timeline.view.home));
    places();
    const kinds = new Set(data.groups.flatMap((g) => g.lanes.flatMap((l) => l.slices.flatMap((s) => [...new Set(s.what)]))));
    $("legend-input").hidden = !kinds.has(INPUT);
    $("legend-ranks").hidden = !kinds.has(COMMUNICATION);
    $("legend-pause").hidden = !kinds.has(PAUSE);
    $("legend-sampled").hidden = !kinds.has(SAMPLED);
    for (const [what, id] of [[5, "copy"], [4, "kernel"], [1, "scope"]]) $(`legend-${id}`).hidden = !kinds.has(what) && !(what === 5 && kinds.has(6));
    for (const id of ["sync", "call", "bubble"]) $(`legend-${id}`).hidden = !data.syncs.start.length;
    $("legend-free").hidden = !data.unprofiled;
  }

  function places() {
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
  $("keys").addEventListener("click", () => help.showModal());
  $("help-close").addEventListener("click", () => help.close());
  help.addEventListener("click", (e) => { if (e.target === help) help.close(); });
  const keys = new Keys({ list, timeline, drawer, help, letGo });

  // theme, paper

  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => { if (timeline) { timeline.palette.read(); timeline.draw(); } };
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

  const drawnTwice = $("before-after");
  const strip = drawnTwice && drawnTwice.querySelector("[data-fix]") ? new BeforeAfter(drawnTwice) : null;

  const inView = timeline ? new InView(timeline, data) : null;
  if (!timeline) $("in-view").hidden = true;

  window.syncscan = { strip, inView, timeline, list, drawer, icicle, data, keys };
})();
