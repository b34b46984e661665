import { checkHost } from './checks.ts';

checkHost('codex');
