import manifest from '../../package.json' with { type: 'json' };

/** Version of the package, such as `0.1.0`. */
export const version: string = manifest.version;
