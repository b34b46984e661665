import { offlineProvider } from './shared/offline.ts';

export const offlineEast = offlineProvider('east');
