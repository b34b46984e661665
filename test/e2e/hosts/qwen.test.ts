import { checkHost } from './checks.ts';

checkHost('qwen');
