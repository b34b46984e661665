import { checkHost } from './checks.ts';

checkHost('gemini');
