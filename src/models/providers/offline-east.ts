import { offlineProvider } from '../offline.ts';

export const offlineEast = offlineProvider('east');
