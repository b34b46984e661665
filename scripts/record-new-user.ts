import { writeFileSync } from 'node:fs';
import { walkAsNewUser } from './new-user/walk.ts';

const introduction = `# The first minutes

What a new user sees, recorded by \`node scripts/record-new-user.ts\` from the built program: an empty directory, no key, a wrong key,
the right one, a start in \`/\`, and the entry in a host. A stand-in answers for the vendor (hence OPENAI_BASE_URL below); paths are
shortened.`;

const steps = await walkAsNewUser();
const sections = steps.map(({ title, line, code, out, err }) => {
  const exit = code === 0 ? '' : `[exit code ${code}]\n`;
  return `## ${title}\n\n\`\`\`text\n$ ${line}\n${out}${err}${exit}\`\`\``;
});
const path = new URL('../docs/new-user.md', import.meta.url);
writeFileSync(path, `${[introduction, ...sections].join('\n\n')}\n`);
console.log(`wrote docs/new-user.md: ${steps.length} commands`);
