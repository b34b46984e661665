import { offlineProvider } from '../offline.ts';

export const offlineWest = offlineProvider('west');
