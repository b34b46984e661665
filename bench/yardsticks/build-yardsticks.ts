import { fileURLToPath } from 'node:url';
import { build } from 'tsdown';

/** Paths of the yardsticks as plain JavaScript, so that none of them pays for stripping types. */
export interface Yardsticks {
  bareNode: string;
  /** The SDK from node_modules, as a small server is commonly installed. */
  bareSdk: string;
  /** The same in one minified file, as this product is built. */
  bundledSdk: string;
  relay: string;
  /** A chat by hand. */
  floor: string;
  /** The same chat with the SDK, the vendor's package and SQLite, and nothing of ours. */
  libraries: string;
  /** A stream over WebSocket, by hand and with the vendor's package. */
  streamsByHand: string;
  streamsWithLibraries: string;
}

// Inside node_modules, where the programs find the packages that they import.
const folder = fileURLToPath(new URL('../../node_modules/.cache/polylogue-bench/', import.meta.url));
const source = (name: string) => fileURLToPath(new URL(`./${name}.ts`, import.meta.url));

export async function buildYardsticks(): Promise<Yardsticks> {
  const shared = {
    config: false,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    fixedExtension: false,
    dts: false,
    clean: false,
    logLevel: 'warn',
    outDir: folder,
  } as const;
  const entries = { 'bare-node': source('bare-node'), 'bare-sdk': source('bare-sdk') };
  await build({ ...shared, entry: entries, deps: { neverBundle: [/^[^./]/] } });
  const bundled = {
    'bundled-sdk': source('bare-sdk'),
    relay: source('relay'),
    floor: source('floor'),
    libraries: source('libraries'),
    'streams-by-hand': source('streams-by-hand'),
    'streams-with-libraries': source('streams-with-libraries'),
  };
  await build({ ...shared, entry: bundled, minify: true, deps: { alwaysBundle: [/.*/], onlyBundle: false } });
  return {
    bareNode: `${folder}bare-node.js`,
    bareSdk: `${folder}bare-sdk.js`,
    bundledSdk: `${folder}bundled-sdk.js`,
    relay: `${folder}relay.js`,
    floor: `${folder}floor.js`,
    libraries: `${folder}libraries.js`,
    streamsByHand: `${folder}streams-by-hand.js`,
    streamsWithLibraries: `${folder}streams-with-libraries.js`,
  };
}
