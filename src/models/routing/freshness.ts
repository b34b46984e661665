import {
  asks,
  asksForTheWeb,
  either,
  eventWord,
  few,
  lately,
  liveFact,
  nearby,
  newsy,
  productState,
  readsPage,
  thisYear,
  today,
  words,
} from './freshness-phrases.ts';

/** Beginnings of what is wanted from the model itself. */
export const wish =
  /^(?:please )?(?:brainstorm|describe|write|suggest|draft|design|plan|help|create|explain|name|outline|think|imagine)/i;

const language =
  '(?:python|javascript|js|typescript|ts|java|go(?:lang)?|rust|c\\+\\+|c#|c|sql|bash|shell|php|ruby|swift|kotlin|scala|r|pandas|numpy|excel|react|vue|angular|node(?:\\.js)?|django|rails|moment(?:\\.js)?|postgres(?:ql)?|mysql|git|html|css|powershell)';

/** Programming it, not knowing it. */
export const programming = either(
  words(
    `(?:how (?:do|can|could|would|should|to)|write|implement|create|build|code|generate|make|parse|refactor|fix)(?: |[^.?!\\n]{1,80}? )(?:functions?|scripts?|quer(?:y|ies)|regex(?:es)?|class(?:es)?|components?|programs?|snippets?|methods?|code|parsers?|scrapers?|bots?|apps?|widgets?|clients?|endpoints?|hooks?|(?:in|with|using) ${language})`,
    `(?:functions?|methods?|code|snippet|syntax|expression|call) (?:in|for) ${language}`,
    `(?:wie|schreib\\p{L}*|baue?|implementier\\p{L}*)[^.?!\\n]{1,80}? (?:funktion|skript|abfrage|klasse|komponente|programm|code|parser|(?:in|mit) ${language})`,
    `(?:comment|écri[sr]\\p{L}*|crée\\p{L}*|implément\\p{L}*)[^.?!\\n]{1,80}? (?:fonction|script|requête|classe|composant|programme|code|(?:en|avec) ${language})`,
    `(?:cómo|escrib\\p{L}*|crea\\p{L}*)[^.?!\\n]{1,80}? (?:función|script|consulta|clase|programa|código|(?:en|con) ${language})`,
  ),
  `(?:写|实现|编写|怎么用|如何用|用)[^。？?]{0,30}(?:函数|脚本|代码|程序|正则|组件|接口)`,
  `(?:用|在)\\s?${language}[^。？?]{0,12}(?:获取|实现|写|中|里)`,
);

const part =
  '(?:values?|variables?|functions?|methods?|class(?:es)?|arrays?|lists?|pointers?|loops?|threads?|iterators?|cursors?|index(?:es)?|nodes?(?![ .-](?:js|lts|version|release|v?\\d))|elements?|rows?|columns?|tables?|records?|commits?|branch(?:es)?|stack|heap|buffers?|queues?|parsers?|components?|modules?|handlers?|states?|sessions?|tokens?|users?|fields?|parameters?|arguments?|timestamps?|dates?|time zones?|timezones?|director(?:y|ies)|folders?|files?|scripts?|line|position|scope|process(?:es)?|implementation|design|architecture|approach|code|config(?:uration)?|setup|schema|tests?|builds?|changes?|diff|plan|draft|wording|text|page|tab|window|selection|context|thinking|understanding|and voltage|flow|draw)';

/** `current`, `latest` and the like said of parts of a program or of what lies at hand. */
export const atHand = either(
  words(
    `(?:current(?:ly)?|latest|newest|last|most recent|today['’]s|present|recent|live) ${few}${part}`,
    `(?:this|that|these|those|my|our|your|the (?:following|above|attached|given|same)) ${few}${part}`,
    `(?:latest|current|newest) (?:version|release) of (?:this|that|my|our|the (?:file|document|code|function|branch|draft|page|table|schema|spec|data|record))`,
    `(?:lock|mutex|semaphore|memory|buffer|connection|resource|handle|pointer|socket|transaction|lease|thread)s?${nearby} released`,
    `(?:aktuelle|letzte|neueste)[nrsm]? ${few}(?:wert|variable|funktion|klasse|zeile|datei|verzeichnis|ordner|zustand|branch|commit|element|knoten|index|datum|code|entwurf)`,
    `(?:valeur|variable|fonction|ligne|fichier|répertoire|dossier|branche|commit|élément|état) (?:actuel\\p{L}*|courante?|récent\\p{L}*)`,
    '(?:ohms?|volts?|amps?|amperes?|voltage)',
    '(?:sort|order|group|filter)(?:ed|ing)? (?:\\S+ )?by|sortier\\p{L}*|tri(?:er|ée?s?)|ordenar',
    `derni(?:er|ère) (?:commit|ligne|élément|fichier|valeur)`,
    `(?:valor|variable|función|archivo|directorio|línea|rama|estado) actual`,
  ),
  '(?:当前|最新|现在)的?(?:变量|函数|目录|文件|分支|提交|行|节点|元素|用户|状态|值|代码|线程|索引|时间戳)',
  '(?:变量|函数|对象|数组)[^。？?]{0,6}(?:当前|现在)',
);

/** Texts that are worked on, not answered. */
export const rewrites = either(
  words(
    'translate|rephrase|reword|rewrite|proofread|paraphrase|grammatical|grammar|spell-?check',
    `(?:write|compose|draft|make up|invent)(?: me)? (?:a|an|some|the)? ?${few}(?:haiku|poem|story|joke|song|limerick|essay|e-?mail|letter|tweet|slogan|tagline|commit message|docstring|comment|name|speech|dialogue)s?`,
    'übersetze?|formuliere|korrigiere|umformulier\\p{L}*|reime',
    `(?:schreib|verfass|dicht)e?\\p{L}* ${few}(?:haiku|gedicht|geschichte|witz|lied|e-?mail|brief|slogan)`,
    'tradui[st]\\p{L}*|reformul\\p{L}*|corrig\\p{L}*',
    `écri[st]?\\p{L}* ${few}(?:haïku|haiku|poème|histoire|blague|chanson|e-?mail|lettre)`,
    'traduce|reescribe|corrige',
    `escrib\\p{L}* ${few}(?:haiku|poema|cuento|chiste|correo|carta)`,
  ),
  '翻译|改写|润色|校对|语法',
  '写(?:一|首|个|篇|封)',
  '翻訳',
);

/** What stays as true as it is. */
export const timeless = either(
  words(
    "what(?:['’]s| is| are) (?:an?|meant)",
    'what does [^?]{1,60} mean',
    'difference between',
    'explain (?:how|why|what|the (?:difference|concept|idea))',
    'how (?:does|do) [^?]{1,60} work',
    'why (?:do|does|is|are)',
    'pros and cons',
    'define',
    'was (?:ist|bedeutet) eine?n?',
    'unterschied zwischen',
    'erklär\\p{L}*',
    'wie funktionier\\p{L}*',
    "qu['’]est-ce qu",
    'différence entre',
    'expliqu\\p{L}*',
    'diferencia entre',
    'explica\\p{L}*',
  ),
  '^什么是',
  '(?:有)?什么区别',
  '(?:是)?什么意思',
  '解释',
  '原理',
);

/** The caller speaks of itself or of its own work. */
export const personal = either(
  words(
    '(?<![-.])(?:i|we|my|our|you|your)',
    'help me',
    'files?|commits?|deploy\\p{L}*|builds?|logs?|merges?|pipeline|tickets?|sprint|stand-?up|meetings?|tests?',
    'ich|wir|mein\\p{L}*|unser\\p{L}*|du|dein\\p{L}*',
    "je|nous|mon|ma|mes|notre|nos|tu|vous|j['’]\\p{L}+",
    'mi|mis|nuestr[oa]s?|yo',
  ),
  '我|你|我们|咱们',
);

/** Whether a text asks for what only a search of the web can tell, and why. */
export interface Freshness {
  verdict: 'yes' | 'maybe' | 'no';
  because: string;
}

/** A longer text carries its question at its beginning or its end; more of it is not looked at. */
const wholeUpTo = 800;

const endChars = 350;

const rawEndChars = 1_500;

const maxTopicWords = 8;

const cve = /\bCVE-\d{4}-\d{3,}\b/i;

const url = /https?:\/\/\S+/i;

const urls = /https?:\/\/\S+/gi;

/** The words that are the caller's own: without code, identifiers and what is quoted. */
function ownWords(text: string): string {
  if (text.length <= 2 * rawEndChars) return endsOf(withoutCode(text));
  const last = text.slice(-rawEndChars);
  const fences = text.slice(0, -rawEndChars).split('```').length - 1;
  // The end may begin inside of a block of code.
  const end = withoutCode(fences % 2 === 1 ? `\`\`\`${last}` : last);
  return `${withoutCode(text.slice(0, rawEndChars)).slice(0, endChars)}\n${end.slice(-endChars)}`;
}

function endsOf(words: string): string {
  return words.length <= wholeUpTo ? words : `${words.slice(0, endChars)}\n${words.slice(-endChars)}`;
}

function withoutCode(text: string): string {
  return text
    .normalize('NFC')
    .replace(/```[\s\S]*?(?:```|$)/g, ' ')
    .replace(/`[^`\n]*`/g, ' ')
    .replace(/["“„«][^"“”„»\n]{0,300}["”“»]/g, ' ')
    .replace(/(?<=^|\s)'[^'\n]{1,200}'(?=$|[\s.,?!:;)])/g, ' ')
    .replace(/(?<![\p{L}\p{N}_$.])[\p{L}_$][\p{L}\p{N}_$.]{0,80}\(\s*[^)\s]{0,40}\)/gu, ' ')
    .replace(/[ \t]+/g, ' ')
    .trim();
}

const yes = (because: string): Freshness => ({ verdict: 'yes', because });

const maybe = (because: string): Freshness => ({ verdict: 'maybe', because });

const no: Freshness = { verdict: 'no', because: '' };

/**
 * Judges a text by its words alone. `narrow` is for tools whose texts are about code: then only a plain wish, or a thing that
 * code does not know, counts.
 */
export function freshnessOf(text: string, { narrow, year }: { narrow: boolean; year: number }): Freshness {
  const words = ownWords(text);
  const plain = words.replace(urls, ' ');
  if (programming.test(plain)) return no;
  if (asksForTheWeb.test(plain)) return yes('asks for the web');
  if (rewrites.test(plain)) return no;
  if (cve.test(plain)) return yes('names a CVE');
  if (atHand.test(plain) || narrow) return no;
  if (asks.test(plain)) return judgeQuestion(plain, words, year);
  return liveFact.test(plain) && today.test(plain) ? yes('names what changes by the hour') : bareTopic(plain);
}

function judgeQuestion(plain: string, words: string, year: number): Freshness {
  const isToday = today.test(plain);
  const general = timeless.test(plain);
  if (general && !isToday) return no;
  if (liveFact.test(plain)) return yes('asks for what changes by the hour or with an office');
  if (productState.test(plain)) return yes('asks for the present state of a product');
  if (newsy.test(plain) && (isToday || lately.test(plain))) return yes('asks for news');
  if (isToday && !personal.test(plain) && !general) return yes('asks about today');
  if (url.test(words) && readsPage.test(plain)) return yes('asks what a page says');
  if (namesYear(plain, year) && eventWord.test(plain)) return yes(`asks about ${year} or the year before`);
  if (lately.test(plain) && !personal.test(plain)) return maybe('may be about the present');
  return no;
}

/** A few words without a question, as people type them into a search box. */
function bareTopic(plain: string): Freshness {
  const few = plain.length <= 80 && plain.split(' ').length <= maxTopicWords;
  if (!few || wish.test(plain) || personal.test(plain) || timeless.test(plain)) return no;
  if (liveFact.test(plain) || productState.test(plain)) return yes('names what changes');
  return newsy.test(plain) && (today.test(plain) || lately.test(plain)) ? yes('names news') : no;
}

function namesYear(plain: string, year: number): boolean {
  return thisYear.test(plain) || new RegExp(`(?<!\\d)(?:${year}|${year - 1})(?!\\d)`).test(plain);
}
