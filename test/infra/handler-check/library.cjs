// A library in CommonJS, which esbuild bundles.
const { readFileSync } = require('node:fs');
const { basename, dirname, join } = require('node:path');

if (process.env.LIBRARY === 'file') readFileSync(join(__dirname, 'library.json'));
exports.isNamed = dirname(__filename) === __dirname && basename(__filename).startsWith('index.');
