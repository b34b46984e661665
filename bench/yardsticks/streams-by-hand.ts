import { ask } from './ask-by-hand.ts';
import { serveStreams } from './serve-streams.ts';

// A streamed answer passed on over WebSocket by hand.
serveStreams(ask);
