import { offlineProvider } from './shared/offline.ts';

export const offlineWest = offlineProvider('west');
