import { ask } from './ask-with-libraries.ts';
import { serveStreams } from './serve-streams.ts';

// The same with the vendor's package.
serveStreams(ask);
