import manifest from '../../package.json' with { type: 'json' };

/** Of the package. */
export const version: string = manifest.version;
