// sharp as a worker of the bench: the same requests and answers as `pillow_worker.py`, with the
// one way "sharp": upright, one Lanczos step, white below alpha, then JPEG qualities until one fits.
'use strict';

const fs = require('node:fs');
const readline = require('node:readline');
const sharp = require('sharp');

const BUDGET = 262144;
const SIDE = 1568;
sharp.concurrency(1);
sharp.cache(false);
const loaded = new Map();

async function prepare(bytes) {
  const { data, info } = await sharp(bytes)
    .rotate()
    .resize({ width: SIDE, height: SIDE, fit: 'inside', withoutEnlargement: true, kernel: 'lanczos3' })
    .flatten({ background: '#ffffff' })
    .toColourspace('srgb')
    .raw()
    .toBuffer({ resolveWithObject: true });
  let url = '';
  for (const quality of [85, 70, 50, 35, 20]) {
    const raw = { width: info.width, height: info.height, channels: info.channels };
    const jpeg = await sharp(data, { raw }).jpeg({ quality }).toBuffer();
    url = `data:image/jpeg;base64,${jpeg.toString('base64')}`;
    if (url.length <= BUDGET) break;
  }
  return { url, what: `jpeg ${info.width}x${info.height}` };
}

async function answer(request) {
  if (request.load) {
    loaded.set(request.load, fs.readFileSync(request.load));
    return {};
  }
  const bytes = loaded.get(request.path);
  const cpu = process.cpuUsage();
  const started = process.hrtime.bigint();
  const { url, what } = await prepare(bytes);
  const wall = Number(process.hrtime.bigint() - started) / 1e6;
  const used = process.cpuUsage(cpu);
  return { wall_ms: wall, cpu_ms: (used.user + used.system) / 1000, bytes: url.length, what };
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
  }
}

main();
