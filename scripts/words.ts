/** Refuses constructions that the writing guide forbids in what users and models read: texts of src/, the pages of docs/, and those of the project. */
import { readFileSync } from 'node:fs';
import { readDocument } from './doc-links/read-document.ts';
import { blankCode } from './structure/blank-code.ts';
import { walk } from './walk.ts';

/** What is not to be written, and what to write instead. */
const forbidden: [pattern: RegExp, instead: string, where?: 'src'][] = [
  [/\b(go|goes|gone|going|went) on with\b/, 'continue'],
  [/\b(go|goes|gone|went) along\b/, 'is included, is sent'],
  [/\bthere is no [a-z]+ ["$]/i, 'unknown …'],
  [/["}] is no (port|age|list|field|suffix|model|number|tool|thread|file|key|name|address|provider)\b/, 'is not a …'],
  [/\bcan't\b/, 'cannot', 'src'],
  [/\bnobody was asked\b/i, 'no model was asked'],
  [/\blooks? whether\b/i, 'check whether'],
  [/\bfor want of\b/, 'because'],
  [/\banew\b/, 'again, or a verb with re-'],
  [/\bbegins? again\b/i, 'start over'],
  [/\bwins? over\b/, 'overrides'],
  [/\bwhatever the\b/i, 'overrides'],
  [/\bthe same for\b/i, 'repeat the noun'],
  [/\bof (its|your|their|his) own\b/, 'separate, custom', 'src'],
  [/\bunless told\b/, '(default: …)'],
  [/\bfor a (try|first look)\b/, 'to try it'],
  [/\bbeside\b/, 'next to, in addition to'],
  [/\b(mends?|mended|put right)\b/, 'fix'],
  [/\bsum(s|med)? up\b/, 'summarize'],
  [/\b(holds now|held against|made sure of)\b/, 'is valid, is checked against'],
  [/\bsend (the same call|the call|it) again\b/i, 'resend the call, retry in … s'],
  [/\bcall it again\b/i, 'retry'],
  [/\bspeaks? of\b/, 'mentions'],
  [/\bfor good\b/, 'permanently'],
  [/\bis said to\b/, 'is shown as'],
  [/\b(whoever|who is asked|who answers)\b/i, 'name the actor'],
  [/\bsomething went wrong\b/i, 'what failed'],
  [/\b(simply|please|sorry)\b/i, 'leave it out'],
  [/\bname (another|a) model of\b/, 'choose a model from'],
  [/\b(data|home|project) folders?\b/, 'directory'],
  [/\bthe most (bytes|characters|tokens)\b/i, 'maximum …'],
  [/\bpictures? of text\b/i, 'scanned documents'],
  [/\b(has|have|had) no room\b/, 'does not fit'],
  [/\bby itself\b/, 'automatically, alone'],
  [/\b(organis|optimis|recognis|modernis|behaviour|favour|licence)/, 'American spelling'],
];

/** The text of each string and template of a source file, and where it starts. */
function* textsOf(source: string): Generator<[text: string, at: number]> {
  for (const { 0: literal, index } of blankCode(source).matchAll(/'[ ]+'|"[ ]+"|[`}][ \n]+(?=`|\$\{)/g))
    yield [source.slice(index, index + literal.length + 2), index];
}

/** A page without its code, with a blank for each line break, so that a phrase is found across lines too. */
function* proseOf(page: string): Generator<[text: string, at: number]> {
  yield [readDocument(page).prose.replaceAll('\n', ' '), 0];
}

/** Words of a list are data. What is generated into docs/reference is read as a page. */
const isRead = (path: string) =>
  /^src\/.*(?<!\.gen|workspace\/words)\.ts$/.test(path) ||
  /^(README|CONTRIBUTING|SECURITY|AGENTS|CHANGELOG|docs\/(?!decisions).*)\.md$/.test(path);

let found = 0;
const paths = walk('.').filter(isRead);
for (const path of paths) {
  const content = readFileSync(path, 'utf8');
  for (const [text, at] of path.endsWith('.md') ? proseOf(content) : textsOf(content)) {
    if (/^['"]\.\.?\//.test(text)) continue;
    for (const [pattern, instead, where] of forbidden) {
      if (where === 'src' && path.endsWith('.md')) continue;
      for (const match of text.matchAll(new RegExp(pattern, `${pattern.flags}g`))) {
        const line = content.slice(0, at + match.index).split('\n').length;
        console.error(`${path}:${line}  "${match[0]}": write ${instead}`);
        found++;
      }
    }
  }
}
if (found > 0) {
  console.error(`${found} forbidden constructions`);
  process.exit(1);
}
console.log(`words: none of ${forbidden.length} forbidden constructions in ${paths.length} files`);
