// Builds replay.bundle.js from src/ and what package-lock.json pins. Its first line names the sources it was built
// from: the SHA-256 of package-lock.json and of src/*.js in the order of their names. A test compares.
import {createHash} from 'node:crypto';
import {readFileSync, readdirSync, writeFileSync} from 'node:fs';
import {build} from 'esbuild';

const sources = readdirSync('src').filter((name) => name.endsWith('.js')).sort().map((name) => `src/${name}`);
const hash = createHash('sha256');
for (const name of ['package-lock.json', ...sources]) {
  hash.update(readFileSync(name));
}
const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version;

await build({
  entryPoints: ['src/main.js'],
  outfile: 'replay.bundle.js',
  bundle: true,
  minify: true,
  format: 'iife',
  target: 'es2020',
  charset: 'ascii',
  legalComments: 'none',
  banner: {
    js: `/* sources ${hash.digest('hex')} */
/* holds three.js ${version('three')} and fflate ${version('fflate')}, both under the MIT licence: see LICENSES.txt */`,
  },
});

const notice = (name) => {
  const text = readFileSync(`node_modules/${name}/LICENSE`, 'utf8').trim();
  return `${name} ${version(name)}\n\n${text}\n`;
};
writeFileSync('LICENSES.txt', ['three', 'fflate'].map(notice).join('\n----\n\n'));
