import { createLocalState } from '../../src/storage/shared-state.ts';
import { sharedStateSuite } from '../contracts/shared-state-suite.ts';

sharedStateSuite('local', async clock => createLocalState(clock));
