// A map of many points: positions and colours come as binary blocks, a lasso goes back as its
// outline. Points, zoom and pan are regl-scatterplot's. The lasso is drawn here, on a canvas of
// its own: the library draws every point again at each step of it, which takes a while without a
// graphics card. What is under the pointer is looked up here too, in buckets over the grid of the
// points: the library's index costs a second at a million.
const STEPS = 65535, CELLS = 256, REACH = 9, STILL = 4, FAINT = 0.16, MANY = 100000;

const blocks = new Map();
async function fetched(url) {
  if (!blocks.has(url)) {
    const asked = fetch(url).then((answer) => {
      if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
      return answer.arrayBuffer();
    });
    asked.catch(() => blocks.delete(url));
    blocks.set(url, asked);
    // Regions come and go; their blocks are small, points and colours are in the browser's cache.
    if (blocks.size > 12) blocks.delete(blocks.keys().next().value);
  }
  return blocks.get(url);
}

// What the library needs to say where the view is: a scale it can set and we can read.
function scale() {
  let domain = [-1, 1], range = [0, 1];
  const at = (value) => range[0] + (value - domain[0]) / (domain[1] - domain[0]) * (range[1] - range[0]);
  at.domain = (value) => value ? (domain = [...value], at) : domain;
  at.range = (value) => value ? (range = [...value], at) : range;
  at.back = (pixel) => domain[0] + (pixel - range[0]) / (range[1] - range[0]) * (domain[1] - domain[0]);
  return at;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
async function settled() {
  const app = document.querySelector('[data-testid="stApp"]');
  for (let turn = 0; turn < 60; turn++) {
    await pause(turn ? 50 : 120);
    if (!app || app.dataset.testScriptState === "notRunning") break;
  }
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 60)));
}
// Unselected points lie many deep, so that opacity alone does not keep them faint: the grey is
// that of #B0B0B0 at low opacity on the page's own ground.
function faint(element) {
  const [r, g, b] = getComputedStyle(element).color.match(/[\d.]+/g).map(Number);
  return r + g + b > 380 ? "#464C55" : "#CFD2D6";
}
const far = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
const clock = () => String(performance.timeOrigin + performance.now());
const onGrid = (value) => Math.max(0, Math.min(STEPS, Math.round((value + 1) / 2 * STEPS)));

// One drawing surface for all maps of the page, no larger than the largest of them: a browser
// has few, each costs a second to start, and the library's own is as large as the window.
function surface(kit, width, height) {
  let kept = window.theodoliteSurface;
  if (!kept || kept.isDestroyed) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    // As the library asks for it, which is then given this one.
    if (!canvas.getContext("webgl", { antialias: true, preserveDrawingBuffer: true })) {
      throw new Error("This browser has no WebGL. Choose a sample of the points above.");
    }
    kept = window.theodoliteSurface = kit.createRenderer({ canvas });
  }
  const scale = devicePixelRatio || 1, [w, h] = [kept.canvas.width / scale, kept.canvas.height / scale];
  if (width > w || height > h) {
    kept.resize(Math.max(width, w), Math.max(height, h));
    kept.refresh();
  }
  return kept;
}

class Chart {
  constructor(box) {
    this.box = box;
    this.frame = box.querySelector(".frame");
    this.canvas = box.querySelector("canvas.points");
    this.ink = box.querySelector("canvas.ink");
    this.say = box.querySelector(".say");
    this.tip = box.querySelector(".tip");
    this.x = scale();
    this.y = scale();
    this.seen = new Map();
    this.turn = 0;
    this.tools();
    this.pointer();
  }

  tools() {
    for (const button of this.box.querySelectorAll("button[data-tool]")) {
      button.onclick = () => {
        const tool = button.dataset.tool;
        if (tool === "fit") return void this.plot?.reset();
        for (const one of this.box.querySelectorAll("button[data-tool]")) {
          if (one.dataset.tool !== "fit") one.setAttribute("aria-pressed", String(one === button));
        }
        this.tool = tool;
        this.applyTool();
      };
    }
    this.tool = "lasso";
  }

  applyTool() {
    // Over the points in lasso and box mode; out of the way of the library's own pan and zoom.
    this.ink.style.pointerEvents = this.tool === "move" ? "none" : "auto";
    this.canvas.style.cursor = "grab";
  }

  pointer() {
    let wait = 0, down = null;
    const place = (event) => {
      const rect = this.frame.getBoundingClientRect();
      return [event.clientX - rect.left - 1, event.clientY - rect.top - 1];
    };
    const stop = () => { this.path = null; this.stroke(); };
    this.frame.addEventListener("pointerdown", (event) => {
      this.hush();
      if (event.button) return;
      down = place(event);
      if (event.target !== this.ink) return;
      this.ink.setPointerCapture(event.pointerId);
      this.path = [down];
    });
    this.frame.addEventListener("pointermove", (event) => {
      clearTimeout(wait);
      const at = place(event);
      if (this.path) {
        if (this.tool === "box") this.path = [down, [at[0], down[1]], at, [down[0], at[1]]];
        else if (far(at, this.path.at(-1)) >= 2) this.path.push(at);
        return this.stroke();
      }
      if (!event.buttons) wait = setTimeout(() => this.hover(...at), 40);
    });
    this.frame.addEventListener("pointerup", (event) => {
      const at = place(event), path = this.path, begun = down;
      down = null;
      stop();
      if (begun && far(at, begun) <= STILL && !(path?.length > 6)) {
        const row = this.nearest(...at);
        if (row >= 0) this.box.tell("picked", row);
      } else if (path) this.lassoed(path);
    });
    this.frame.addEventListener("pointercancel", stop);
    this.frame.addEventListener("pointerleave", () => { clearTimeout(wait); this.hush(); });
    this.frame.addEventListener("keydown", (event) => { if (event.key === "Escape") stop(); });
    // A wheel zooms in every mode.
    this.ink.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.canvas.dispatchEvent(new WheelEvent("wheel", event));
    }, { passive: false });
  }

  stroke() {
    const { clientWidth: wide, clientHeight: high } = this.frame, scale = devicePixelRatio || 1;
    this.ink.width = wide * scale;
    this.ink.height = high * scale;
    if (!this.path || this.path.length < 2) return;
    const pen = this.ink.getContext("2d");
    pen.scale(scale, scale);
    pen.beginPath();
    for (const [x, y] of this.path) pen.lineTo(x, y);
    pen.closePath();
    pen.fillStyle = "rgba(42, 140, 205, .14)";
    pen.fill();
    pen.strokeStyle = "rgb(42, 140, 205)";
    pen.lineWidth = 1.5;
    pen.stroke();
  }

  hush() { this.over = -1; this.tip.hidden = true; }

  async hover(px, py) {
    const row = this.nearest(px, py);
    if (row < 0) return this.hush();
    if (row === this.over) return;
    this.over = row;
    const url = `${this.data.item}&row=${row}`;
    if (!this.seen.has(url)) {
      this.seen.set(url, fetch(url).then((answer) => answer.ok ? answer.json() : null).catch(() => null));
    }
    const item = await this.seen.get(url);
    if (!item || this.over !== row) return;
    const picture = this.tip.querySelector("img");
    picture.hidden = !item.sha;
    if (item.sha) picture.src = this.data.thumb + item.sha;
    picture.alt = item.caption || item.label || "";
    this.tip.querySelector("b").textContent = item.caption || item.label || `id ${item.id}`;
    this.tip.querySelector("span").textContent =
      [item.label, item.domain, `id ${item.id}`].filter(Boolean).join(" · ");
    this.tip.hidden = false;
    const { clientWidth: wide, clientHeight: high } = this.frame;
    this.tip.style.left = `${Math.max(0, Math.min(px + 14, wide - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${Math.max(0, Math.min(py + 14, high - this.tip.offsetHeight))}px`;
  }

  // Points sorted into cells of the grid, so that a look-up reads a few hundred at most.
  sort() {
    const n = this.n, first = new Uint32Array(CELLS * CELLS + 1), at = new Uint16Array(n);
    for (let i = 0; i < n; i++) {
      at[i] = (this.gy[i] >> 8) * CELLS + (this.gx[i] >> 8);
      first[at[i] + 1] += 1;
    }
    for (let c = 0; c < CELLS * CELLS; c++) first[c + 1] += first[c];
    const next = first.slice(), rows = new Uint32Array(n);
    for (let i = 0; i < n; i++) rows[next[at[i]]++] = i;
    this.cells = { first, rows };
  }

  nearest(px, py) {
    if (!this.plot || !this.n) return -1;
    if (!this.cells) this.sort();
    const wide = Math.abs(this.x.back(px + REACH) - this.x.back(px)) / 2 * STEPS;
    const gx = (this.x.back(px) + 1) / 2 * STEPS, gy = (this.y.back(py) + 1) / 2 * STEPS;
    const cell = (value) => Math.max(0, Math.min(CELLS - 1, Math.floor(value / 256)));
    let best = wide * wide, row = -1;
    for (let cy = cell(gy - wide); cy <= cell(gy + wide); cy++) {
      for (let cx = cell(gx - wide); cx <= cell(gx + wide); cx++) {
        const c = cy * CELLS + cx;
        for (let k = this.cells.first[c]; k < this.cells.first[c + 1]; k++) {
          const i = this.cells.rows[k], dx = this.gx[i] - gx, dy = this.gy[i] - gy;
          const away = dx * dx + dy * dy;
          if (away < best) { best = away; row = i; }
        }
      }
    }
    return row;
  }

  async show(data) {
    this.data = data;
    this.box.dataset.begun ||= clock();
    this.canvas.setAttribute("aria-label", data.alt);
    const turn = ++this.turn;
    try {
      const [kit, points, colours, lit] = await Promise.all([
        import(new URL(data.library, document.baseURI).href),
        fetched(data.points), fetched(data.colours), data.lit ? fetched(data.lit) : null,
      ]);
      // A later call has overtaken this one: it draws what is wanted now.
      if (turn !== this.turn || this.gone) return;
      // The pictures of a new selection come first: drawing the points again holds the page up.
      if (this.plot && lit !== this.lit) await settled();
      if (turn !== this.turn || this.gone) return;
      this.take(points, colours, lit);
      await this.begin(kit);
      await this.draw();
      this.say.textContent = "";
    } catch (error) {
      this.say.textContent = `The map cannot be drawn. ${error.message || error}`;
      this.box.dataset.failed = "1";
    }
  }

  async begin(kit) {
    if (this.plot) return;
    // An index of one point far away: the library then looks for nothing under the pointer.
    this.empty = await kit.createSpatialIndex([[1e9, 1e9]], false);
    const { width, height } = this.frame.getBoundingClientRect();
    this.plot = kit.createScatterplot({
      renderer: surface(kit, width, height), canvas: this.canvas, width, height, xScale: this.x, yScale: this.y,
      colorBy: "valueZ", opacityBy: "valueW", pointSizeSelected: 0, pointOutlineWidth: 0,
      // At two pixels nobody tells a disc from a square, which is the cheaper one.
      renderPointsAsSquares: this.n > MANY,
      backgroundColor: [0, 0, 0, 0], deselectOnDblClick: false, deselectOnEscape: false,
    });
    this.plot.subscribe("draw", () => this.painted());
    this.applyTool();
    new ResizeObserver(() => {
      const now = this.frame.getBoundingClientRect();
      if (!this.plot || !(now.width > 0)) return;
      surface(kit, now.width, now.height);
      this.plot.set({ width: now.width, height: now.height });
    }).observe(this.frame);
  }

  lassoed(pixels) {
    const path = pixels.map(([x, y]) => [onGrid(this.x.back(x)), onGrid(this.y.back(y))]);
    if (path.length < 3 || !this.plot) return;
    this.box.tell("lasso", path.flat());
  }

  take(points, colours, lit) {
    if (points !== this.points) {
      this.points = points;
      this.n = points.byteLength / 4;
      this.gx = new Uint16Array(points, 0, this.n);
      this.gy = new Uint16Array(points, 2 * this.n, this.n);
      this.cells = null;
      this.rows = new Array(this.n);
      for (let i = 0; i < this.n; i++) {
        this.rows[i] = [2 * this.gx[i] / STEPS - 1, 2 * this.gy[i] / STEPS - 1, 0, 1];
      }
      this.colours = null;
    }
    const fresh = colours !== this.colours || lit !== this.lit;
    this.colours = colours;
    this.lit = lit;
    this.bits = lit ? new Uint8Array(lit) : null;
    if (fresh) this.paint(new Uint8Array(colours));
  }

  paint(codes) {
    const grey = this.data.palette.length, n = this.n, bits = this.bits, rows = this.rows;
    this.litCount = 0;
    if (!bits) {
      for (let i = 0; i < n; i++) { rows[i][2] = codes[i]; rows[i][3] = 1; }
      this.ordered = rows;
      return;
    }
    for (const byte of bits) for (let rest = byte; rest; rest &= rest - 1) this.litCount += 1;
    // Lit points are drawn last, on top of the grey ones.
    const ordered = new Array(n);
    let back = 0, front = n - this.litCount;
    for (let i = 0; i < n; i++) {
      const row = rows[i];
      if ((bits[i >> 3] >> (i & 7)) & 1) { row[2] = codes[i]; row[3] = 1; ordered[front++] = row; }
      else { row[2] = grey; row[3] = 0; ordered[back++] = row; }
    }
    this.ordered = ordered;
  }

  async draw() {
    const n = this.n, size = n > 500000 ? 1.6 : n > 100000 ? 2.2 : 3;
    this.plot.set({
      pointColor: [...this.data.palette, faint(this.box)], pointSize: size,
      opacity: this.bits ? [FAINT, 0.95] : [FAINT, n > 300000 ? 0.5 : 0.75],
    });
    await this.plot.draw(this.ordered, {
      zDataType: "categorical", wDataType: "categorical", spatialIndex: this.empty,
    });
    this.box.dataset.lit = String(this.litCount);
    this.box.dataset.shown = this.data.stamp;
    this.box.dataset.drawn = String(n);
    this.box.dataset.at ||= clock();
  }

  painted() { this.box.dataset.frames = String(1 + Number(this.box.dataset.frames || 0)); }

  end() {
    this.gone = true;
    this.plot?.destroy();
    this.plot = null;
  }
}

export default function (component) {
  const { parentElement: root, data, setTriggerValue } = component;
  const box = root.querySelector(".map");
  if (!box) return;
  box.tell = (name, value) => setTriggerValue(name, value);
  box.chart ||= new Chart(box);
  box.chart.show(data);
  return () => { box.chart?.end(); box.chart = null; };
}
