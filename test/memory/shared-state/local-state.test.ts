import { createLocalState } from '../../../src/memory/shared-state/local-state.ts';
import { sharedStateSuite } from '../../contracts/shared-state-suite.ts';

sharedStateSuite('local', async clock => createLocalState(clock));
