// Runs after every install and before the tests, on whatever Node there is: plain JavaScript that Node 20 understands.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const wanted = 24;
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const at = (...parts) => join(root, ...parts);

function majorOf(node) {
  const answer = spawnSync(node, ['--version'], { encoding: 'utf8' });
  return answer.status === 0 ? Number(answer.stdout.trim().replace(/^v/, '').split('.')[0]) : 0;
}

/** A Node that can run the build: the pinned one of the development dependencies, or the one that runs this. */
function findNode() {
  const name = process.platform === 'win32' ? 'node.exe' : 'node';
  const pinned = [at('node_modules', 'node', 'bin', name), at('node_modules', '.bin', name)].filter(existsSync);
  return [...pinned, process.execPath].find(node => majorOf(node) >= wanted);
}

/** The bundler's program; undefined without the development dependencies. */
function findBundler() {
  const manifest = at('node_modules', 'tsdown', 'package.json');
  if (!existsSync(manifest)) return undefined;
  return at('node_modules', 'tsdown', JSON.parse(readFileSync(manifest, 'utf8')).bin.tsdown);
}

/** What the build reads. The packages are named by their lock file. */
const inputs = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsdown.config.ts',
  'scripts/prepare.mjs',
  'scripts/build',
  'src',
];

/** Says what was built of what; a build deletes it with the rest of dist/, and the package leaves it out. */
const record = at('dist', '.built');

/** The files of a path relative to the root: all below a directory, or the file itself; none where there is nothing. */
function filesOf(path) {
  if (!existsSync(at(path))) return [];
  if (!statSync(at(path)).isDirectory()) return [path];
  return readdirSync(at(path)).flatMap(name => filesOf(join(path, name)));
}

/** Changes with the name and the content of each of these files; the record itself is none of them. */
function fingerprint(paths) {
  const hash = createHash('sha256');
  for (const file of paths.flatMap(filesOf).sort()) {
    if (at(file) === record) continue;
    const content = readFileSync(at(file));
    hash.update(`${file} ${content.length}\n`).update(content);
  }
  return hash.digest('hex');
}

/** Whether dist/ holds what a build would make again: neither what goes in nor what came out has changed since. */
function isBuilt(source) {
  if (!existsSync(at('dist', 'main.js')) || !existsSync(record)) return false;
  return readFileSync(record, 'utf8') === `${source} ${fingerprint(['dist'])}`;
}

function prepare() {
  const built = existsSync(at('dist', 'main.js'));
  const tsdown = findBundler();
  if (!existsSync(at('src', 'main.ts'))) return 0;
  if (!tsdown) {
    if (!built) {
      console.error(
        'dist/ is not built, and the build needs the development dependencies: run "npm ci", then "npm prune --omit=dev".',
      );
    }
    return 0;
  }
  const node = findNode();
  if (!node) {
    console.error(
      `dist/ was not built: that needs Node ${wanted} or newer, and this is ${process.version}. Install it and run "npm run build".`,
    );
    return 0;
  }
  // Taken before the build, so that what is edited meanwhile counts as a change.
  const source = fingerprint(inputs);
  if (isBuilt(source)) return 0;
  const { status, error } = spawnSync(node, [tsdown, '--logLevel', 'warn'], { cwd: root, stdio: 'inherit' });
  if (error) console.error(`the build could not be started: ${error.message}`);
  if (status === 0 && existsSync(at('dist'))) writeFileSync(record, `${source} ${fingerprint(['dist'])}`);
  return status ?? 1;
}

process.exitCode = prepare();
