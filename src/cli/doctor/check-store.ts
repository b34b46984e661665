import type { Product } from '../../app/app.ts';
import { isAppError } from '../../core/errors.ts';
import type { Finding } from './doctor-checks.ts';

/** Asks the server in which threads live, where there is one. */
export async function checkStore(inspect: Product['inspectStore']): Promise<Finding[]> {
  if (!inspect) return [];
  const what = 'store';
  try {
    const { text, warnings } = await inspect();
    return [
      { state: 'ok', what, text },
      ...warnings.map((warning): Finding => ({ state: 'warn', what, text: warning })),
    ];
  } catch (error) {
    if (!isAppError(error)) throw error;
    return [{ state: 'fail', what, text: error.message, next: error.details.next }];
  }
}
