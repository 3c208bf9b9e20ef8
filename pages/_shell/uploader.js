// The uploader: gathers files, bundles them and sends them to /upload/<inbox>.
const BUNDLE = 8e6, MOST = 500, SMALL = 1e6;

function header(path, size) {
  const name = new TextEncoder().encode(path);
  const head = new Uint8Array(2 + name.length + 8), view = new DataView(head.buffer);
  view.setUint16(0, name.length);
  head.set(name, 2);
  view.setUint32(2 + name.length, Math.floor(size / 2 ** 32));
  view.setUint32(6 + name.length, size >>> 0);
  return head;
}

function bundles(files) {
  const made = [];
  let parts = [], bytes = 0, n = 0;
  const close = () => { if (n) made.push({ body: new Blob(parts), bytes, n }); parts = []; bytes = n = 0; };
  for (const { path, file } of files) {
    if (n && (n >= MOST || bytes + file.size > BUNDLE)) close();
    parts.push(header(path, file.size), file);
    bytes += file.size; n += 1;
    if (file.size > SMALL) close();
  }
  close();
  return made;
}

function send(url, body, step, stopping) {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("POST", url);
    request.upload.onprogress = (event) => step(event.loaded);
    request.onload = () => {
      let answer = {};
      try { answer = JSON.parse(request.responseText); } catch (error) { answer = {}; }
      if (request.status === 200) return done(answer);
      const said = answer.error || { message: `The server answered ${request.status}.`, hint: "" };
      failed(new Error(`${said.message} ${said.hint}`));
    };
    request.onerror = () => failed(new Error("The connection was lost. Try again."));
    request.onabort = () => failed(new Error("Stopped."));
    stopping.now = () => request.abort();
    request.send(body);
  });
}

async function walk(entry, into, prefix) {
  if (entry.isFile) {
    const file = await new Promise((done, failed) => entry.file(done, failed));
    into.push({ path: prefix + file.name, file });
  } else if (entry.isDirectory) {
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((done, failed) => reader.readEntries(done, failed));
      if (!some.length) break;
      for (const one of some) await walk(one, into, `${prefix}${entry.name}/`);
    }
  }
}

const words = (bytes) => bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

export default function (component) {
  const { parentElement: root, data, setTriggerValue } = component;
  const box = root.querySelector(".drop");
  if (!box) return;
  box.target = data.url;
  box.tell = (value) => setTriggerValue("arrived", value);
  if (box.ready) return;
  box.ready = true;
  const find = (name) => box.querySelector(name);
  const bar = find("progress"), say = find(".say"), stop = find(".stop");
  const stopping = { asked: false, now: () => {} };

  async function start(files) {
    if (!files.length || box.busy) return;
    box.busy = true;
    stopping.asked = false;
    for (const one of [find(".files"), find(".folder")]) one.disabled = true;
    bar.hidden = stop.hidden = false;
    const total = files.reduce((sum, { file }) => sum + file.size, 0) || 1;
    const got = { files: 0, bytes: 0, refused: [], error: "" };
    let sent = 0;
    try {
      for (const { body, bytes } of bundles(files)) {
        if (stopping.asked) throw new Error("Stopped.");
        const step = (loaded) => {
          const now = Math.min(sent + loaded, total);
          bar.value = now / total;
          say.textContent = `${words(now)} of ${words(total)}, ${got.files} of ${files.length} files`;
        };
        const answer = await send(box.target, body, step, stopping);
        sent += bytes;
        got.files += answer.files; got.bytes += answer.bytes;
        if (got.refused.length < 200) got.refused.push(...answer.refused.slice(0, 200));
      }
      say.textContent = `${got.files} files, ${words(got.bytes)}`;
    } catch (error) {
      got.error = String(error.message || error);
      say.textContent = got.error;
    }
    box.busy = false;
    for (const one of [find(".files"), find(".folder")]) one.disabled = false;
    bar.hidden = stop.hidden = true;
    box.tell(got);
  }

  const chosen = (list) => [...list].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
  find(".files").onclick = () => find(".in-files").click();
  find(".folder").onclick = () => find(".in-folder").click();
  for (const input of box.querySelectorAll("input")) {
    input.onchange = () => { const files = chosen(input.files); start(files).then(() => { input.value = ""; }); };
  }
  stop.onclick = () => { stopping.asked = true; stopping.now(); };
  box.ondragover = (event) => { event.preventDefault(); box.classList.add("over"); };
  box.ondragleave = () => box.classList.remove("over");
  box.ondrop = async (event) => {
    event.preventDefault();
    box.classList.remove("over");
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    const files = [];
    say.textContent = "Looking into the folders";
    for (const entry of entries) await walk(entry, files, "");
    start(files);
  };
}
