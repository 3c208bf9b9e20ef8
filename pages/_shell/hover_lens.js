// Shows the picture of the point under the pointer beside plotly's own label.
export default function (component) {
  const { parentElement: root, data } = component;
  const tip = root.querySelector(".lens"), picture = tip.querySelector("img");
  tip.data = data;
  const seen = tip.seen ||= new Map();
  const look = async (event) => {
    const id = event.points?.[0]?.customdata;
    if (id === undefined || id === null) return;
    tip.over = id;
    const url = `${tip.data.item}&id=${id}`;
    if (!seen.has(url)) seen.set(url, fetch(url).then((a) => a.ok ? a.json() : null).catch(() => null));
    const item = await seen.get(url);
    if (!item?.sha || tip.over !== id) return;
    picture.src = tip.data.thumb + item.sha;
    picture.alt = item.caption || item.label || "";
    const x = event.event?.clientX ?? 0, y = event.event?.clientY ?? 0;
    tip.hidden = false;
    const left = x > innerWidth / 2 ? x - 130 : x + 22;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, Math.min(y + 22, innerHeight - 126))}px`;
  };
  const hide = () => { tip.over = null; tip.hidden = true; };
  // A chart is made anew now and then; each new one is given the listeners once.
  const attach = () => {
    for (const key of tip.data.keys) {
      for (const chart of document.querySelectorAll(`.st-key-${key} .js-plotly-plot`)) {
        if (!chart.on || chart.thLens) continue;
        chart.thLens = true;
        chart.on("plotly_hover", look);
        chart.on("plotly_unhover", hide);
        chart.addEventListener("pointerdown", hide);
      }
    }
  };
  attach();
  tip.timer ||= setInterval(attach, 700);
  return () => { clearInterval(tip.timer); tip.timer = 0; hide(); };
}
