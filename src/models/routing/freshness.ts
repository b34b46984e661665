import { letter, likelyAboutNow, speaksOfNow } from './freshness-model.ts';

/** What a text may hold. It becomes a regular expression with its first use: that takes its time, and few calls come to all. */
interface Phrases {
  source: string;
  test(text: string): boolean;
}

function phrases(source: string): Phrases {
  let pattern: RegExp | undefined;
  return {
    source,
    test(text) {
      pattern ??= new RegExp(source, 'i');
      return pattern.test(text);
    },
  };
}

/** One of these words or phrases, as whole words of any alphabet. */
function words(...alternatives: string[]): Phrases {
  return phrases(`(?<!${letter})(?:${alternatives.join('|')})(?!${letter})`);
}

/** Scripts without spaces have no word boundaries. */
function either(spaced: Phrases, ...unspaced: string[]): Phrases {
  return phrases(`${spaced.source}|${unspaced.join('|')}`);
}

/** Up to four words: what counts to three or fewer is copied into the expression that often. */
const few = '(?:[^\\s.?!,;:]+ ){0,4}';

/** A stretch of the same sentence. */
const nearby = '(?:[^.?!\\n]|\\.(?=\\w)){0,50}?';

/** The caller wants the web searched, in so many words. */
const asksForTheWeb = either(
  words(
    '(?:search|check|scan|consult|use|query|ask) (?:the )?(?:web|internet|net)',
    'search (?:online|on google|google|bing)',
    '(?:do|run|make|perform|use|with|via) (?:a |an |the )?(?:quick )?(?:web|online|internet|google) search',
    'google (?:it|this|that|for)',
    'browse (?:the )?(?:web|internet|net)',
    'look (?:it|this|that|them) up',
    `(?:look|look up|check|verify|research|find out|see)${nearby} (?:online|on the (?:web|internet|net))`,
    `(?:such|recherchier|schau|sieh|guck|prüf|find)\\w*${nearby} (?:im (?:web|netz|internet)|online)`,
    '(?:im (?:web|netz|internet)|online) (?:nach)?(?:suchen|schauen|sehen|recherchieren|prüfen)',
    'googl(?:e|en|est|t)? (?:mal|bitte|das|nach)',
    `(?:cherch|recherch|regard|vérifi|consult|trouv)${letter}*${nearby} (?:sur (?:le |l['’])?(?:web|internet|net)|en ligne)`,
    `(?:busca|consulta|mira|verifica|investiga)${letter}*${nearby} (?:en (?:la |el )?(?:web|red|internet)|en línea)`,
  ),
  '上网(?:搜|查|找|看)|联网(?:搜|查)',
  '(?:在)?网(?:上|络上)(?:搜|查|找)',
  '(?:搜|搜索|百度|谷歌)一下',
  '查(?:一下|查|询)[^。？?]{0,6}(?:最新|现在|今天)',
  'ネットで(?:検索|調べ)',
  'ググって',
);

/** Facts that change by the hour, or with who holds an office. */
const liveFact = words(
  'weather(?! (?:vane|app|pattern|api|data|station|widget|service|client|model|function|icon|component|balloon)s?)',
  'will it (?:rain|snow|be sunny)',
  '(?:how|that) (?:cold|warm|hot) is it',
  '(?:any |the )?news (?:on|about|from|regarding)',
  'any news|the latest (?:on|about|from|news)|top stories',
  'when (?:is|are) (?:the )?next(?! (?:tick|iteration|render|call|frame|token|event|step|line|item|element|turn))',
  'temperature (?:in|outside)|(?:stock|share) price',
  'exchange rate (?:of|between|from|for)',
  '(?:bitcoin|btc|ether|ethereum|gold|silver|oil|brent) price',
  'price of (?:a )?(?:bitcoin|btc|ether|ethereum|gold|silver|oil|brent)',
  '(?:dollars?|euros?|usd|eur|gbp|yen|francs?|pounds?) (?:to|in) (?:dollars?|euros?|usd|eur|gbp|yen|francs?|pounds?)',
  "who(?:['’]s| is) (?:currently |now )?(?:the )?(?:current |new |acting )?(?:president|prime minister|chancellor|ceo|cto|king|queen|pope|mayor)",
  '(?:flight|train|traffic) (?:status|delays?)',
);

/** What is mostly, but not always, asked about as it is now. */
const newsy = words(
  'news|headlines?|stock market|the markets?|nasdaq|dow jones|elections?|standings|who won|score (?:of|in)',
  'interest rates?|inflation(?: rate)?|trends?|pricing|prices?|outage|law',
);

/** Versions, releases, support and prices of products: as good as the day they were read on. */
const productState = words(
  `(?:latest|newest|current|most recent) ${few}(?:versions?|releases?|lts|sdk|price|pricing|prices|rates?|fees?|lineup|models?)`,
  `(?:which|what) ${few}[^\\s?]*(?:version|release)s?${nearby} (?:latest|newest|current|currently|lts|stable|supported|recommended)`,
  `(?:is|are|has|have|will|did)${nearby} (?:been released|released yet|shipped|out yet|come out yet|shipped yet|generally available|end[- ]of[- ]life|eol|discontinued|still (?:supported|maintained|developed|available|free|alive|in use))`,
  `(?:has|have|is|are|did|does)${nearby} yet(?=\\s*(?:[?.!]|$))`,
  `(?:does|do|can)${nearby} support${nearby} (?:now|already|yet)(?=\\s*(?:[?.!]|$))`,
  `(?:a |any )?newer (?:stable )?(?:version|release|model)s? (?:of|than)`,
  `how much (?:does|do|is|are)${nearby} (?:now|right now|today|currently|at the moment|these days)`,
  `when (?:will|does|is)${nearby} (?:be released|released|come out|coming out|ship|launch|reach (?:eol|end of life))`,
  "what(?:['’]s| is| are the)? new (?:features )?in",
  '(?:which|what) version of (?!th|my|our|your|it)[^?]{1,40} (?:should|is recommended|is best|do (?:i|we) need)',
  'is out(?: yet)?(?=\\s*(?:[?.!]|$))',
  'release notes (?:of|for)|change ?log (?:of|for)',
  `breaking changes (?:in|of) ${few}v?\\d`,
);

/** Words for today and its neighbours. */
const today = words(
  "right now|today(?:['’]s)?|tonight",
  'this (?:morning|afternoon|evening|week|weekend|month)',
  'yesterday|last (?:night|week|weekend)|tomorrow|as of (?:today|now)|just (?:announced|happened)',
);

/** Words that may mean the state of the world, or just the state of a program. */
const lately = words(
  'latest|current(?:ly)?|recent(?:ly)?|newest|now|at the moment|nowadays|these days|this year',
  'up[- ]to[- ]date',
);

const asks = either(
  words(
    "(?:what|which|who|when|where|how|is|are|was|were|did|does|do|has|have|will|any)(?:['’]s)?",
    'tell me|give me|show me|list|find|check|summari[sz]e|report|compare',
  ),
  '[?？]|什么|哪|谁|几|多少|吗|呢|如何|怎么|告诉|列出|有没有',
);

/** A page is to be read. */
const readsPage = either(
  words(
    'summari[sz]e|read|open|visit|fetch|check out|what does|according to|review|compare',
    'fasse?|lies|öffne|besuche|was steht',
    'résume|lis|ouvre|visite',
    'resume|lee|abre',
  ),
  '总结|阅读|打开|概括',
);

/** Beginnings of what is wanted from the model itself. */
const wish =
  /^(?:please )?(?:brainstorm|describe|write|suggest|draft|design|plan|help|create|explain|name|outline|think|imagine)/i;

const language =
  '(?:python|javascript|js|typescript|ts|java|go(?:lang)?|rust|c\\+\\+|c#|c|sql|bash|shell|php|ruby|swift|kotlin|scala|r|pandas|numpy|excel|react|vue|angular|node(?:\\.js)?|django|rails|moment(?:\\.js)?|postgres(?:ql)?|mysql|git|html|css|powershell)';

/** Programming it, not knowing it. */
const programming = words(
  `(?:how (?:do|can|could|would|should|to)|write|implement|create|build|code|generate|make|parse|refactor|fix)[^.?!\\n]{0,80}? (?:functions?|scripts?|quer(?:y|ies)|regex(?:es)?|class(?:es)?|components?|programs?|snippets?|methods?|code|parsers?|scrapers?|bots?|apps?|widgets?|clients?|endpoints?|hooks?|(?:in|with|using) ${language})`,
  `(?:functions?|methods?|code|snippet|syntax|expression|call) (?:in|for) ${language}`,
  `(?:wie|schreib${letter}*|baue?|implementier${letter}*)[^.?!\\n]{1,80}? (?:funktion|skript|abfrage|klasse|komponente|programm|code|parser|(?:in|mit) ${language})`,
);

const part =
  '(?:values?|variables?|functions?|methods?|class(?:es)?|arrays?|lists?|pointers?|loops?|threads?|iterators?|cursors?|index(?:es)?|nodes?(?![ .-](?:js|lts|version|release|v?\\d))|elements?|rows?|columns?|tables?|records?|commits?|branch(?:es)?|stack|heap|buffers?|queues?|parsers?|components?|modules?|handlers?|states?|sessions?|tokens?|users?|fields?|parameters?|arguments?|timestamps?|dates?|time zones?|timezones?|director(?:y|ies)|folders?|files?|scripts?|line|position|scope|process(?:es)?|implementation|design|architecture|approach|code|config(?:uration)?|setup|schema|tests?|builds?|changes?|diff|plan|draft|wording|text|page|tab|window|selection|context|thinking|understanding|and voltage|flow|draw)';

/** `current`, `latest` and the like said of parts of a program or of what lies at hand. */
const atHand = words(
  `(?:current(?:ly)?|latest|newest|last|most recent|today['’]s|present|recent|live) ${few}${part}`,
  `(?:this|that|these|those|my|our|your|the (?:following|above|attached|given|same)) ${few}${part}`,
  `(?:latest|current|newest) (?:version|release) of (?:this|that|my|our|the (?:file|document|code|function|branch|draft|page|table|schema|spec|data|record))`,
  `(?:lock|mutex|semaphore|memory|buffer|connection|resource|handle|pointer|socket|transaction|lease|thread)s?${nearby} released`,
  '(?:ohms?|volts?|amps?|amperes?|voltage)',
);

/** Texts that are worked on, not answered. */
const rewrites = words(
  'translate|rephrase|reword|rewrite|proofread|paraphrase|grammatical|grammar|spell-?check',
  `(?:write|compose|draft|make up|invent)(?: me)? (?:a|an|some|the)? ?${few}(?:haiku|poem|story|joke|song|limerick|essay|e-?mail|letter|tweet|slogan|tagline|commit message|docstring|comment|name|speech|dialogue)s?`,
);

/** What stays as true as it is. */
const timeless = words(
  "what(?:['’]s| is| are) (?:an?|meant)",
  'what does [^?]{1,60} mean',
  'difference between',
  'explain (?:how|why|what|the (?:difference|concept|idea))',
  'how (?:does|do) [^?]{1,60} work',
  'why (?:do|does|is|are)',
  'pros and cons',
  'define',
);

/** The caller speaks of itself or of its own work. */
const personal = either(
  words(
    '(?<![-.])(?:i|we|my|our|you|your)',
    'help me',
    `files?|commits?|deploy${letter}*|builds?|logs?|merges?|pipeline|tickets?|sprint|stand-?up|meetings?|tests?`,
    `je|nous|mon|ma|mes|notre|nos|tu|vous|j['’]${letter}+`,
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

/** From which likelihood on a text counts as one about now, and from which it is left open. */
const sure = 0.75;
const doubtful = 0.45;

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
export function freshnessOf(text: string, { narrow }: { narrow: boolean }): Freshness {
  const words = ownWords(text);
  const plain = words.replace(urls, ' ');
  if (programming.test(plain)) return no;
  if (asksForTheWeb.test(plain)) return yes('asks for the web');
  if (rewrites.test(plain)) return no;
  if (cve.test(plain)) return yes('names a CVE');
  if (atHand.test(plain) || narrow) return no;
  if (url.test(words) && readsPage.test(plain)) return yes('asks what a page says');
  const likely = likelyAboutNow(plain);
  const byRules = asks.test(plain) ? judgeQuestion(plain) : bareTopic(plain);
  if (byRules?.verdict === 'yes' || (byRules?.verdict === 'no' && likely < sure)) return byRules;
  if (likely >= sure) return yes('sounds like one about what is true now');
  const isOpen = likely >= doubtful && speaksOfNow(plain);
  return byRules ?? (isOpen ? maybe('may be about the present') : no);
}

/** Undefined: the rules have nothing to say. */
function judgeQuestion(plain: string): Freshness | undefined {
  const isToday = today.test(plain);
  const general = timeless.test(plain);
  if (general && !isToday) return no;
  if (liveFact.test(plain)) return yes('asks for what changes by the hour or with an office');
  if (productState.test(plain)) return yes('asks for the present state of a product');
  if (newsy.test(plain) && (isToday || lately.test(plain))) return yes('asks for news');
  if (isToday && !personal.test(plain) && !general) return yes('asks about today');
  if (lately.test(plain) && !personal.test(plain)) return maybe('may be about the present');
  return undefined;
}

/** A few words without a question, as people type them into a search box. */
function bareTopic(plain: string): Freshness | undefined {
  const few = plain.length <= 80 && plain.split(' ').length <= maxTopicWords;
  if (!few || wish.test(plain) || personal.test(plain) || timeless.test(plain)) return no;
  if (liveFact.test(plain) || productState.test(plain)) return yes('names what changes');
  return newsy.test(plain) && (today.test(plain) || lately.test(plain)) ? yes('names news') : undefined;
}
