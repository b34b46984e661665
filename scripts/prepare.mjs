// Runs after every install, on whatever Node the installer has: plain JavaScript that Node 20 understands.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
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
  const { status, error } = spawnSync(node, [tsdown, '--logLevel', 'warn'], { cwd: root, stdio: 'inherit' });
  if (error) console.error(`the build could not be started: ${error.message}`);
  return status ?? 1;
}

process.exitCode = prepare();
