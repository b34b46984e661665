/**
 * Which folders a walk does not enter, unless one was named itself:
 * - hidden ones: the name begins with a dot (hidden files are read like others);
 * - folders whose name can hardly mean anything but dependencies, output or caches;
 * - folders with a name that is just as often source, when a file in them shows that a tool made them;
 * - any folder that is tagged as a cache by a CACHEDIR.TAG file.
 * What git ignores is left out besides. Anything else is entered, so that `vendor/` or `out/` with real code is not lost.
 */
const buildFolders: readonly string[] = [
  'node_modules',
  'bower_components',
  'jspm_packages',
  '__pycache__',
  'dist',
  'build',
  'target',
  'coverage',
  'htmlcov',
  'DerivedData',
];

/** Name of a folder → names of entries, one of which gives it away. */
const markedFolders: Readonly<Record<string, readonly string[]>> = {
  env: ['pyvenv.cfg'],
  venv: ['pyvenv.cfg'],
  virtualenv: ['pyvenv.cfg'],
  vendor: ['modules.txt', 'autoload.php', 'bundle'],
  out: ['_next', 'production', 'build.ninja', 'args.gn'],
  site: ['sitemap.xml', 'sitemap.xml.gz'],
  _build: ['doctrees', '.doctrees', 'dev', 'prod', 'log'],
  obj: ['project.assets.json'],
};

const cacheTag = 'CACHEDIR.TAG';

/** By its name alone: before it is listed. */
export function isSkippedFolder(name: string): boolean {
  return name.startsWith('.') || name.endsWith('.egg-info') || buildFolders.includes(name);
}

/** By what is in it. */
export function isMarkedFolder(name: string, entries: ReadonlySet<string>): boolean {
  const markers = Object.hasOwn(markedFolders, name) ? markedFolders[name] : undefined;
  return entries.has(cacheTag) || (markers ?? []).some(marker => entries.has(marker));
}
