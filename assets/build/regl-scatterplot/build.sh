#!/bin/sh
# Makes assets/vendor/regl-scatterplot/regl-scatterplot.js: one module from the packages that
# package-lock.json names by version and digest. Needs node 20 or later and npm; the same
# lock gives the same bytes. Writes source.json with the digest of what it made.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "$here/../../vendor/regl-scatterplot" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$here/entry.js" "$work"
cd "$work"
npm ci --ignore-scripts --no-audit --no-fund
node_modules/.bin/esbuild entry.js --bundle --format=esm --minify --target=es2022 \
  --legal-comments=none --outfile=regl-scatterplot.js
# A comment of a shader carries an address; the app names none.
sed 's|https://[^ ]*/package/||' regl-scatterplot.js > "$out/regl-scatterplot.js"
: > "$out/LICENSE"
for name in regl-scatterplot @flekschas/utils camera-2d-simple dom-2d-camera earcut gl-matrix \
  pub-sub-es regl regl-line; do
  version=$(node -p "require('./node_modules/$name/package.json').version")
  printf '==== %s %s\n\n' "$name" "$version" >> "$out/LICENSE"
  cat node_modules/"$name"/LICENSE* >> "$out/LICENSE"
  printf '\n' >> "$out/LICENSE"
done
cat "$here/kdbush-licence.txt" >> "$out/LICENSE"
node - "$out" <<'JS'
const { createHash } = require("crypto"), { readFileSync, writeFileSync } = require("fs");
const out = process.argv[2], made = readFileSync(`${out}/regl-scatterplot.js`);
const of = (name) => require(`${process.cwd()}/node_modules/${name}/package.json`);
const about = {
  file: "regl-scatterplot.js",
  package: "regl-scatterplot",
  version: of("regl-scatterplot").version,
  licence: "MIT",
  licences: "LICENSE",
  source: "npm package regl-scatterplot",
  built_by: "assets/build/regl-scatterplot/build.sh",
  bundled: Object.fromEntries(["@flekschas/utils", "camera-2d-simple", "dom-2d-camera", "earcut",
    "gl-matrix", "pub-sub-es", "regl", "regl-line"].map((name) => [name, of(name).version])),
  bundler: `esbuild ${of("esbuild").version}`,
  bytes: made.length,
  sha256: createHash("sha256").update(made).digest("hex"),
};
writeFileSync(`${out}/source.json`, JSON.stringify(about, null, 2) + "\n");
JS
