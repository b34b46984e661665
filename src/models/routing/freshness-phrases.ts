/** What a text may hold. It becomes a regular expression with its first use: that takes its time, and few calls come to all. */
export interface Phrases {
  readonly source: string;
  test(text: string): boolean;
}

function phrases(source: string): Phrases {
  let pattern: RegExp | undefined;
  return {
    source,
    test(text) {
      pattern ??= new RegExp(source, 'iu');
      return pattern.test(text);
    },
  };
}

/** One of these words or phrases, as whole words of any alphabet. */
export function words(...alternatives: string[]): Phrases {
  return phrases(`(?<![\\p{L}\\p{N}_])(?:${alternatives.join('|')})(?![\\p{L}\\p{N}_])`);
}

/** Scripts without spaces have no word boundaries. */
export function either(spaced: Phrases, ...unspaced: string[]): Phrases {
  return phrases(`${spaced.source}|${unspaced.join('|')}`);
}

/** Up to three words. */
export const few = '(?:[^\\s.?!,;:]+ ){0,3}';

/** A stretch of the same sentence. */
export const nearby = '(?:[^.?!\\n]|\\.(?=\\w)){0,50}?';

/** The caller wants the web searched, in so many words. */
export const asksForTheWeb = either(
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
    `(?:cherch|recherch|regard|vérifi|consult|trouv)\\p{L}*${nearby} (?:sur (?:le |l['’])?(?:web|internet|net)|en ligne)`,
    `(?:busca|consulta|mira|verifica|investiga)\\p{L}*${nearby} (?:en (?:la |el )?(?:web|red|internet)|en línea)`,
  ),
  '上网(?:搜|查|找|看)|联网(?:搜|查)',
  '(?:在)?网(?:上|络上)(?:搜|查|找)',
  '(?:搜|搜索|百度|谷歌)一下',
  '查(?:一下|查|询)[^。？?]{0,6}(?:最新|现在|今天)',
  'ネットで(?:検索|調べ)',
  'ググって',
);

/** Facts that change by the hour, or with who holds an office. */
export const liveFact = either(
  words(
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
    'wetter(?:bericht|vorhersage)?',
    'wird es (?:heute |morgen )?(?:regnen|schneien)',
    '(?:regnet|schneit) es',
    '(?:neuigkeiten|nachrichten) (?:zu|zum|zur|über|von|vom|aus)',
    '(?:aktien|wechsel|euro|dollar|bitcoin)kurs',
    '(?:benzin|strom|gold|öl)preis',
    'wer ist (?:der|die|das) (?:aktuelle |neue |derzeitige |amtierende )?(?:us-)?(?:präsident|bundespräsident|kanzler|bundeskanzler|ceo|papst|bürgermeister)(?:in)?',
    'météo|quel temps (?:fait|fera)',
    '(?:les |des )?nouvelles (?:du jour|de|sur|à propos)',
    'taux de change',
    "cours (?:de|du) (?:l[’']|la )?(?:action|bitcoin|or|euro|dollar)",
    'qui est (?:le |la )?(?:nouveau |nouvelle |actuel )?(?:président|présidente|premier ministre|pdg|pape|chancelier)',
    'qué tiempo (?:hace|hará)|tipo de cambio',
    'quién es (?:el|la) (?:actual )?(?:presidente|presidenta|papa)',
  ),
  '天气|气温',
  '(?:会|要)下(?:雨|雪)',
  '股价|汇率|金价|油价|币价|(?:总统|总理|首相|主席|CEO|首席执行官)是谁',
  '谁是[^。？?]{0,12}(?:总统|总理|首相|主席|CEO)',
  '天気|為替|株価',
);

/** What is mostly, but not always, asked about as it is now. */
export const newsy = either(
  words(
    'news|headlines?|stock market|the markets?|nasdaq|dow jones|elections?|standings|who won|score (?:of|in)',
    'interest rates?|inflation(?: rate)?|trends?|pricing|prices?|outage|law',
    'nachrichten|schlagzeilen|neuigkeiten|börse|wahl(?:en|ergebnis|ergebnisse)?|gewonnen|leitzins|preise?',
    'spielstand',
    'actualités?|nouvelles|bourse|élections?|gagné|prix',
    'noticias|elecciones|precios?',
  ),
  '新闻|头条|消息|股市|选举|大选|比分|谁赢|价格|多少钱|房价',
  'ニュース|価格',
);

/** Versions, releases, support and prices of products: as good as the day they were read on. */
export const productState = either(
  words(
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
    `(?:neueste|neuste|aktuelle|aktuellste|letzte)[nrs]? (?:stabile[nr]? |lts[- ]?)?(?:version|release|preise?|modelle?|${few}(?:version|release))`,
    `welche ${few}[^\\s?]*version${nearby} (?:aktuell|neueste|neuste|lts|stabil)`,
    'was ist neu in',
    `wann (?:kommt|erscheint)${nearby}(?: raus| heraus)?`,
    `(?:schon|bereits) (?:erschienen|veröffentlicht|verfügbar)`,
    `noch (?:unterstützt|gepflegt|gewartet|kostenlos)`,
    `(?:kostet|kosten)${nearby} (?:gerade|heute|jetzt|aktuell|derzeit|momentan)`,
    '(?:gerade|aktuell|momentan) (?:down|offline|gestört|erreichbar|offen|verfügbar)',
    '(?:dernière|nouvelle) version',
    `version (?:lts |stable )?(?:actuelle|la plus récente|stable actuelle)`,
    'quoi de neuf dans|quand (?:sort|sortira)',
    `coûten?t?${nearby} (?:en ce moment|actuellement|aujourd['’]hui|maintenant)`,
    'est(?:-il|-elle)? (?:déjà )?(?:sortie?|disponible)',
    'prix actuels?',
    '(?:última|nueva) versión',
    'versión (?:más reciente|actual)',
  ),
  '(?:最新|当前|目前)的?(?:稳定|正式|LTS|长期支持)?(?:版|版本)',
  '最新[^。？?，,]{0,12}版',
  '版本[^。？?]{0,6}(?:最新|多少|是几)',
  '(?:发布|上线|推出|出)了(?:吗|没)',
  '(?:什么时候|何时)(?:发布|上线|推出)',
  '更新日志',
  '最新(?:的|款|型号)[^。？?]{0,12}(?:是哪|有哪|哪一?[款个])',
  '(?:最新|当前|现在|目前|今天)[^。？?]{0,12}(?:价格|多少钱|费用|定价)',
  '最新(?:の)?(?:版|バージョン)',
);

/** Words for today and its neighbours. */
export const today = either(
  words(
    "right now|today(?:['’]s)?|tonight",
    'this (?:morning|afternoon|evening|week|weekend|month)',
    'yesterday|last (?:night|week|weekend)|tomorrow|as of (?:today|now)|just (?:announced|happened)',
    'heute|gestern|(?<!guten )morgen|heutige[nrs]?|diese (?:woche|nacht)|dieses wochenende',
    'letzte (?:woche|nacht)',
    "aujourd['’]hui|hier|demain|ce (?:matin|soir|week-end)|cette (?:semaine|nuit)|en ce moment",
    'hoy|ayer|esta (?:semana|noche)|ahora mismo',
  ),
  '今天|今日|昨天|昨日|明天|今晚|今早|本周|这周|上周|刚刚',
  '今週',
);

/** Words that may mean the state of the world, or just the state of a program. */
export const lately = either(
  words(
    'latest|current(?:ly)?|recent(?:ly)?|newest|now|at the moment|nowadays|these days|this year',
    'up[- ]to[- ]date',
    'aktuell\\p{L}*|derzeit\\p{L}*|momentan|gerade|zurzeit|neueste\\p{L}*|kürzlich|jüngst\\p{L}*|jetzt',
    'actuel\\p{L}*|récent\\p{L}*|derni(?:er|ère)s?|maintenant',
    'actual(?:es|mente)?|últim[oa]s?|recientes?',
  ),
  '最新|最近|近期|目前|现在|当前|今年',
  '現在',
);

/** The present year, without a number. */
export const thisYear = either(
  words('this year', 'dieses jahr', 'diesjährige[nrs]?', 'cette année', 'este año'),
  '今年',
);

export const asks = either(
  words(
    "(?:what|which|who|when|where|how|is|are|was|were|did|does|do|has|have|will|any)(?:['’]s)?",
    'tell me|give me|show me|list|find|check|summari[sz]e|report|compare',
    'was|welche[nrsm]?|wer|wann|wo|wie|ist|sind|hat|gibt|nenne|zeig|sag|vergleiche?',
    'quel(?:le)?s?|qui|quand|où|comment|combien|quoi|est-ce|donne|compare',
    'qué|quién|cuándo|cuál(?:es)?|dónde|cómo|cuánto|dime',
  ),
  '[?？]|什么|哪|谁|几|多少|吗|呢|如何|怎么|告诉|列出|有没有',
);

/** A page is to be read. */
export const readsPage = either(
  words(
    'summari[sz]e|read|open|visit|fetch|check out|what does|according to|review|compare',
    'fasse?|lies|öffne|besuche|was steht',
    'résume|lis|ouvre|visite',
    'resume|lee|abre',
  ),
  '总结|阅读|打开|概括',
);

export const eventWord = either(
  words(
    'who|won|win|wins|winners?|release[ds]?|happen(?:ed|s)?|announce[ds]?|best|top|new|election|conference|champion\\p{L}*|world cup|olympics|law|tax|salary|salaries|price|prices|budget',
    'wer|gewonnen|gewann|beste[nrs]?|neue[nrs]?|wahl|gesetz|steuer\\p{L}*|wm|em',
    'qui|gagné|meilleure?s?|nouve(?:au|lle)s?|loi|impôts?',
  ),
  '谁|最好|冠军|发布|选举|法律|税',
);
