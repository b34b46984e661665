import { checkHost } from './checks.ts';

checkHost('claude');
