import { checkHost } from './checks.ts';

checkHost('opencode');
