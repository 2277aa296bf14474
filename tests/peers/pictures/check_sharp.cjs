// What sharp thinks of pictures that left: the same list in and out as `check_pillow.py`, without
// the comparison.
'use strict';

const fs = require('node:fs');
const sharp = require('sharp');

async function wrong(picture) {
  const options = { failOn: 'warning', animated: false };
  const { format, width, height } = await sharp(picture.path, options).metadata();
  if (`image/${format}` !== picture.media_type) return `is ${format}, declared ${picture.media_type}`;
  if (width !== picture.width || height !== picture.height) {
    return `is ${width}x${height}, declared ${picture.width}x${picture.height}`;
  }
  await sharp(picture.path, options).raw().toBuffer();
  return null;
}

async function main() {
  const report = [];
  for (const picture of JSON.parse(fs.readFileSync(0, 'utf8'))) {
    report.push({
      wrong: await wrong(picture).catch((error) => `sharp: ${error.message}`),
    });
  }
  process.stdout.write(JSON.stringify(report));
}

main();
