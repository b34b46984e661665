import { onAbort, withTimeout } from '../../core/concurrency.ts';
import { asError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { refusalResponse } from '../access/caller.ts';
import { createQuotas } from '../access/limits.ts';
import { eventStream } from '../http/responses.ts';
import type { Route, RoutedRequest, RouteServices } from '../http/routes.ts';
import type { DashboardData } from './data.ts';
import { htmlText } from './html.ts';
import {
  assetAnswer,
  assets,
  bareAnswer,
  loginPage,
  notFoundPage,
  pageAnswer,
  problemOf,
  problemPage,
  redirectTo,
  type Theme,
  themes,
  type Visit,
} from './page.ts';
import { type Asked, localPath, routes } from './routes.ts';
import { cookiesOf, createSignIn, isFromHere, isSame, type Signed } from './sign-in.ts';

export interface LiveStreamParts {
  clock: Pick<Clock, 'after' | 'sleep'>;
  /** What is shown now. */
  render(): Promise<{ html: string; isOver: boolean }>;
  /** Calls `onNews` whenever it may be another, until the signal is aborted. */
  subscribe(onNews: () => void, signal: AbortSignal): void;
  isAllowed(): boolean;
  onEnd(): void;
}

/** News come in bursts; a reader sees no more than a few pictures a second. */
const pauseMs = 200;

/** Without news it is drawn anew after this long: times go on, and a dead connection is found out. */
const quietMs = 10_000;

/** Server-sent events: a piece of a page, each time that it is another one. */
export function liveStream({ clock, render, subscribe, isAllowed, onEnd }: LiveStreamParts): Response {
  const response = eventStream(clock, async (write, over) => {
    let news = Promise.withResolvers<boolean>();
    const hear = () => news.resolve(true);
    onAbort(over, hear);
    subscribe(hear, over);
    let last = '';
    try {
      while (!over.aborted && isAllowed()) {
        // What is heard while it is drawn is drawn once more.
        news = Promise.withResolvers();
        const { html, isOver } = await render();
        write(html === last ? ': \n\n' : `data: ${JSON.stringify(html)}\n\n`);
        last = html;
        if (isOver) return void write('event: over\ndata: 1\n\n');
        if (await withTimeout(clock, quietMs, news.promise)) await clock.sleep(pauseMs, over).catch(() => {});
      }
    } finally {
      onEnd();
    }
  });
  response.headers.set('Cache-Control', 'no-store');
  return response;
}

export interface DashboardParts
  extends Pick<RouteServices, 'tokens' | 'identify' | 'clock' | 'random' | 'admit' | 'onError'> {
  data: DashboardData;
}

/** Pages that follow what happens, at the same time. */
const maxFollowers = { perCaller: () => 24, inAll: 200 };

/** Answers what belongs to the dashboard, else undefined; behind the guards. `caller`: who sent a token, or the operator without any. */
export function createDashboard(parts: DashboardParts): Route['handle'] {
  const signIn = createSignIn(parts);
  const login = createLogin(parts, signIn);
  const follow = createQuotas(maxFollowers);

  async function answer(routed: RoutedRequest): Promise<Response | undefined> {
    const { request, caller: known } = routed;
    const url = new URL(request.url);
    const asset = Object.values(assets).find(({ path }) => path === url.pathname);
    if (asset) return isReading(request) ? assetAnswer(asset) : wrongMethod(request);
    const isLogin = url.pathname === '/login' || url.pathname === '/logout';
    const own = routes.filter(({ path }) => path.test(url.pathname));
    if (!isLogin && own.length === 0) {
      const visitor = isReading(request) ? signIn.who(request, known) : undefined;
      return visitor?.session ? pageAnswer(notFoundPage, visitOf(request, url, visitor)) : undefined;
    }
    const fields = await fieldsOf(request);
    if (!fields) return refused(request, 'The form is too long or malformed.');
    if (request.method === 'POST' && !isFromHere(request))
      return refused(request, 'The form was submitted from another site.');
    const signed = signIn.who(request, known);
    if (url.pathname === '/login') return login(routed, fields, signed);
    if (!signed) return stranger(request, url);
    if (signed.session && isReading(request)) routed.cutBy(signed.session);
    const tooMany = signed.session ? parts.admit(signed.caller) : undefined;
    if (tooMany) return refusalResponse(tooMany);
    if (request.method === 'POST' && !isSame(fields.get('csrf') ?? '', signed.csrf))
      return refused(request, 'The form has expired. Go back, reload the page and submit it again.');
    if (isLogin) return request.method === 'POST' ? redirectTo('/login', signIn.leave(request)) : wrongMethod(request);
    const method = isReading(request) ? 'GET' : request.method;
    const route = own.find(each => each.method === method);
    if (!route) return wrongMethod(request);
    const visit = visitOf(request, url, signed);
    const [, ...inPath] = route.path.exec(url.pathname) ?? [];
    try {
      const follow = followFor(request, visit);
      const answer = await route.answer({ request, visit, parts: inPath, fields, follow, clock: parts.clock });
      return answer instanceof Response ? answer : pageAnswer(answer ?? notFoundPage, visit);
    } catch (error) {
      const page = problemOf(error);
      if (!page) parts.onError(asError(error));
      return pageAnswer(page ?? broken, visit);
    }
  }

  function visitOf(request: Request, url: URL, { caller, csrf, session }: Signed): Visit {
    const { data, clock } = parts;
    const theme = themeOf(request);
    return { caller, own: data.of(caller), data, url, now: clock.now(), theme, csrf, signedIn: session !== undefined };
  }

  function followFor(request: Request, visit: Visit): Asked['follow'] {
    return (only, render) => {
      const onEnd = follow(visit.caller.owner);
      if (!onEnd) return pageAnswer(crowded, visit);
      return liveStream({
        clock: parts.clock,
        subscribe: (onNews, signal) =>
          visit.own.calls.subscribe(id => (only === undefined || only === id) && onNews(), signal),
        async render() {
          const { part, isOver } = await render({ ...visit, now: parts.clock.now() });
          return { html: htmlText(part), isOver };
        },
        // Answers to a header end with its token, whatever they say.
        isAllowed: visit.signedIn ? signIn.watch(request) : () => true,
        onEnd,
      });
    };
  }

  return async routed => {
    const response = await answer(routed);
    if (!response || routed.request.method !== 'HEAD') return response;
    // Nobody reads it, and a stream would go on for good.
    await response.body?.cancel();
    return new Response(null, response);
  };
}

function createLogin({ identify, random }: DashboardParts, signIn: ReturnType<typeof createSignIn>) {
  return ({ request, address }: RoutedRequest, fields: URLSearchParams, signed: Signed | undefined): Response => {
    const isSent = request.method === 'POST';
    const back = localPath((isSent ? fields : new URL(request.url).searchParams).get('back'));
    if (signed && !isSent) return redirectTo(back);
    if (!isSent && !isReading(request)) return wrongMethod(request);
    if (isSent && !signIn.began(request, fields.get('csrf') ?? ''))
      return refused(request, 'The sign-in form has expired. Reload the page.');
    const token = (fields.get('token') ?? '').trim();
    const found = isSent ? identify(`Bearer ${token}`, address) : undefined;
    const refusal = found && 'status' in found ? found : undefined;
    const entered = isSent && !refusal ? signIn.enter(request, token) : undefined;
    if (entered !== undefined) return redirectTo(back, entered);
    const { csrf, cookie } = signIn.begin(request, random.uuid());
    const wait = refusal?.retryAfterSeconds;
    const response = bareAnswer(loginPage(csrf, back, isSent, wait), themeOf(request), cookie);
    if (wait !== undefined) response.headers.set('Retry-After', String(wait));
    return response;
  };
}

const isReading = ({ method }: Request): boolean => method === 'GET' || method === 'HEAD';

function themeOf(request: Request): Theme {
  const chosen = cookiesOf(request).get('polylogue_theme');
  return themes.find(theme => theme === chosen) ?? 'auto';
}

/** What a form said; undefined for what is none. */
async function fieldsOf(request: Request): Promise<URLSearchParams | undefined> {
  if (request.method !== 'POST') return new URLSearchParams();
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(request.headers.get('content-type') ?? '')) return undefined;
  return new URLSearchParams(await request.text());
}

/** Whoever is not known signs in first; pages come back to where they were. */
function stranger(request: Request, url: URL): Response {
  if (!isReading(request)) return refused(request, 'Sign in first.');
  if (request.headers.get('accept')?.includes('text/event-stream')) return new Response(null, { status: 401 });
  return redirectTo(`/login?back=${encodeURIComponent(url.pathname + url.search)}`);
}

const refused = (request: Request, message: string): Response =>
  bareAnswer(problemPage(403, 'Refused', message), themeOf(request));

const wrongMethod = (request: Request): Response =>
  bareAnswer(problemPage(405, 'Refused', 'This address does not take this method.'), themeOf(request));

const broken = problemPage(500, 'Internal error', 'An unexpected error occurred. See the server log.');

const crowded = problemPage(503, 'Too many pages', 'Too many live pages are open. Close some of them.');

/** The dashboard as a part of the daemon: whatever is at no path of another's. */
export const dashboardRoute =
  (data: DashboardData) =>
  (services: RouteServices): Route => {
    const handle = createDashboard({ ...services, data });
    return { path: '/', methods: ['GET', 'HEAD', 'POST'], access: 'anybody', handle };
  };
