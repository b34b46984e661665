/** Somebody before the dashboard: a program with a token, or a browser with its cookies. */
export interface DashboardClient {
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  /** The text of a page that is there. */
  page(path: string): Promise<string>;
  /** Sends a form as a browser does, with the sign of the page that it stands on; `csrf` sends another one. */
  post(
    path: string,
    fields?: Record<string, string>,
    options?: { csrf?: string; headers?: Record<string, string> },
  ): Promise<Response>;
  csrf(): Promise<string>;
}

export function dashboardClient(url: string, who: { token?: string; cookie?: string }): DashboardClient {
  const own: Record<string, string> = {
    ...(who.token !== undefined && { authorization: `Bearer ${who.token}` }),
    ...(who.cookie !== undefined && { cookie: who.cookie }),
  };
  const get: DashboardClient['get'] = (path, headers = {}) =>
    fetch(`${url}${path}`, { headers: { ...own, ...headers }, redirect: 'manual' });
  async function page(path: string): Promise<string> {
    const response = await get(path);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text.slice(0, 300)}`);
    return text;
  }
  const csrf = async () => csrfIn(await page('/spend'));
  return {
    get,
    page,
    csrf,
    async post(path, fields = {}, options = {}) {
      const sign = options.csrf ?? (await csrf());
      const headers = { origin: url, ...own, ...options.headers };
      const body = new URLSearchParams({ ...fields, csrf: sign });
      return fetch(`${url}${path}`, { method: 'POST', headers, body, redirect: 'manual' });
    },
  };
}

export function csrfIn(page: string): string {
  return /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? '';
}

/** What a reader sees of a page, without its tags, on one line. */
export function readable(page: string): string {
  return page
    .replace(/<(script|style|svg)[^>]*>.*?<\/\1>/gs, ' ')
    .replace(/<[^>]+>/g, ' ')
    .replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
    .replace(/[\s\u00a0]+/g, ' ');
}
