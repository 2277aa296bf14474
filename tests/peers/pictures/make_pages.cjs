// Draws pages nobody tuned anything on, in Chromium: `make_pages.cjs FOLDER SEED`. Each page has
// words and colours by the seed; NAME.png is its screenshot, NAME.txt the words visible on it.
// Writes a JSON list of names to stdout.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { chromium } = require('playwright-core');

const [folder, seed] = process.argv.slice(2);
let state = Number(seed) >>> 0;

function random() {
  // Mulberry32.
  state = (state + 0x6d2b79f5) >>> 0;
  let value = state;
  value = Math.imul(value ^ (value >>> 15), value | 1);
  value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
  return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
}

const pick = (list) => list[Math.floor(random() * list.length)];
const times = (count, make) => Array.from({ length: count }, (_, index) => make(index)).join('');
const SYLLABLES = 'ar ben cor dal em fen gor hal in jur kel lor men nar ol per quil ras sol tam ur ven wil yor zan'.split(' ');
const word = () => pick(SYLLABLES) + pick(SYLLABLES) + (random() < 0.4 ? pick(SYLLABLES) : '');
const words = (count) => times(count, () => `${word()} `);
const number = () => String(Math.floor(random() * 90000) + 1000);
const hue = (light, full = 70) => `hsl(${Math.floor(random() * 360)} ${full}% ${light}%)`;

const PAGES = {
  sheet: [1920, 1080, 1, () => `<style>body{margin:0;font:13px sans-serif}td,th{border:1px solid #ccd;padding:3px 8px}
    th{background:${hue(88)}}tr:nth-child(even){background:#f7f8fa}</style><table>${times(38, () =>
    `<tr><th>${word()}${times(14, () => `<td>${random() < 0.5 ? word() : number()}`)}`)}</table>`],
  terminal: [2560, 1440, 1, () => `<style>body{background:#14161b;color:#d0d3da;font:18px/1.35 monospace;margin:16px}</style>
    ${times(50, () => `<div><span style="color:${hue(65)}">${word()}</span> ${words(9)}<span style="color:${hue(70)}">${number()}</span> ${words(6)}</div>`)}`],
  review: [1920, 1080, 1, () => `<style>body{margin:0;font:13px/20px monospace}</style>${times(52, () =>
    `<div style="background:${pick(['#fff', '#e6ffec', '#ffebe9', '#fff'])}"><span style="color:#888">${number()}</span>
     ${words(5)}<b style="color:${hue(35)}">${word()}</b> ${words(12)}</div>`)}`],
  chat: [1920, 1080, 1, () => `<style>body{margin:20px;font:16px/1.4 sans-serif;background:linear-gradient(160deg,${hue(92)},${hue(82)})}
    p{border-radius:16px;padding:10px 16px;max-width:900px;margin:10px}i{display:inline-block;width:40px;height:40px;border-radius:20px;vertical-align:middle}</style>
    ${times(15, (index) => `<p style="background:${index % 2 ? '#fff' : hue(85, 60)};margin-left:${index % 2 ? 40 : 700}px">
    <i style="background:conic-gradient(${hue(50)},${hue(60)},${hue(40)},${hue(50)})"></i> ${words(26)}</p>`)}`],
  board: [1920, 1080, 2, () => `<style>body{margin:16px;font:14px sans-serif;background:#eef1f5;display:grid;grid-template-columns:repeat(4,1fr);gap:14px}
    section{background:#fff;border-radius:8px;padding:12px;height:236px;overflow:hidden}</style>${times(16, () =>
    `<section><b>${words(3)}</b><svg width="400" height="90">${times(24, (bar) => {
      const height = Math.floor(random() * 80) + 5;
      return `<rect x="${bar * 17}" y="${90 - height}" width="13" height="${height}" fill="${hue(55)}"/>`;
    })}</svg><div>${words(26)}${number()}</div></section>`)}`],
};

async function main() {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
  for (const [name, [width, height, scale, draw]] of Object.entries(PAGES)) {
    const context = await browser.newContext({ viewport: { width, height }, deviceScaleFactor: scale });
    const page = await context.newPage();
    await page.setContent(`<!doctype html><meta charset=utf-8>${draw()}`);
    await page.screenshot({ path: path.join(folder, `${name}.png`) });
    fs.writeFileSync(path.join(folder, `${name}.txt`), await page.evaluate(visibleWords));
    await context.close();
  }
  await browser.close();
  process.stdout.write(JSON.stringify(Object.keys(PAGES)));
}

/** Runs in the page: the words that lie wholly inside the window and under nothing. */
function visibleWords() {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (const match of node.textContent.matchAll(/\S+/g)) {
      const range = document.createRange();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      const box = range.getBoundingClientRect();
      const inside = box.width > 0 && box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
      if (!inside || node.parentElement.closest('style')) continue;
      const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
      if (top && (top === node.parentElement || top.contains(node.parentElement))) found.push(match[0]);
    }
  }
  return found.join(' ');
}

main();
